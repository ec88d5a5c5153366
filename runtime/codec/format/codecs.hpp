// The block codecs of `.ptz` (codecs.def): numbers in files, names, and components.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.hpp"

namespace ptxkit::format {

// Pinned: the numbers are stored in files.
enum class PtzCodec : uint8_t {
#define PTZ_CODEC(enumerator, number, ...) enumerator = number,
#include "runtime/codec/format/codecs.def"
};

enum class PtzModel : uint8_t { lz77, bwt, planes };
enum class PtzCoder : uint8_t { rans, fse, huffman };

struct PtzCodecRow {
  PtzCodec codec;
  std::string_view name;  // the value of --codec
  PtzModel model;
  PtzCoder coder;
  unsigned block_bits;       // log2 of the default block size
  std::string_view summary;  // "LZ77, rANS"

  // Whether it searches for matches and so offers a choice of MatchSearch (blocks/block_codec.hpp).
  bool has_match_search() const { return model == PtzModel::lz77; }
  // Whether its streams can be of rANS `chunked`.
  bool has_chunked_form() const { return model == PtzModel::lz77 && coder == PtzCoder::rans; }
  // Whether it takes a block for an array of numbers (Elements).
  bool has_elements() const { return model == PtzModel::planes; }
};

// The form of rANS streams (docs/entropy.md, `chunked`) that a coding may have in place of `warp`.
struct ChunkedRans {
  uint32_t lanes = 8;            // 4, 8 or 32
  uint32_t chunk_bytes = 16384;  // 1, 4, 8 or 16 KiB

  auto operator<=>(const ChunkedRans&) const = default;
};

// How a codec of planes splits a block: into the planes of these elements. Pinned: the values of
// kernels::TypedLayout, which are stored in files.
enum class Elements : uint8_t { bytes = 1, float16, bfloat16, float32, stride2, stride4, stride8 };

// A codec with its options: what the header of a container says about how blocks are coded. Options that the codec
// lacks are a bug of the caller; parse_ptz_coding() and read_ptz_coding() refuse them.
struct PtzCoding {
  PtzCoding() = default;
  PtzCoding(PtzCodec of, std::optional<ChunkedRans> form = {}) : codec(of), chunked(form) {}  // NOLINT(*-explicit-*)
  PtzCoding(PtzCodec of, Elements numbers) : codec(of), elements(numbers) {}

  PtzCodec codec = PtzCodec::lzr;
  std::optional<ChunkedRans> chunked = {};
  Elements elements = Elements::bytes;

  auto operator<=>(const PtzCoding&) const = default;
};

// "lzr", "lzr:lanes=8,chunk=4K", "rans:dtype=bfloat16", "rans:stride=4": the value of --codec. Options may be absent
// and stand in any order.
Result<PtzCoding> parse_ptz_coding(std::string_view text);
std::string name_of(const PtzCoding& coding);
// Every form of the codec: without options, and with each combination that it has.
std::vector<PtzCoding> ptz_codings(PtzCodec codec);

// The header's byte of options, 0 where there are none; and the coding of both bytes, if there is one.
uint8_t option_byte(const PtzCoding& coding);
std::optional<PtzCoding> read_ptz_coding(uint8_t codec, uint8_t options);

std::span<const PtzCodecRow> ptz_codecs();                 // in the order of codecs.def
const PtzCodecRow* find_ptz_codec(std::string_view name);  // null if there is none
const PtzCodecRow* find_ptz_codec(uint8_t number);         // null if there is none
const PtzCodecRow& row_of(const PtzCoding& coding);        // every enumerator has a row
std::string ptz_codec_names();                             // "lzr, lzf"

}  // namespace ptxkit::format
