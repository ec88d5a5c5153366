// The block codecs of `.ptz` (codecs.def): numbers in files, names, and components.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ptxkit::format {

// Pinned: the numbers are stored in files.
enum class PtzCodec : uint8_t {
#define PTZ_CODEC(enumerator, number, ...) enumerator = number,
#include "runtime/codec/format/codecs.def"
};

enum class PtzModel : uint8_t { lz77, bwt };
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
};

std::span<const PtzCodecRow> ptz_codecs();                 // in the order of codecs.def
const PtzCodecRow* find_ptz_codec(std::string_view name);  // null if there is none
const PtzCodecRow* find_ptz_codec(uint8_t number);         // null if there is none
const PtzCodecRow& row_of(PtzCodec codec);                 // every enumerator has a row
std::string ptz_codec_names();                             // "lzr, lzf"

}  // namespace ptxkit::format
