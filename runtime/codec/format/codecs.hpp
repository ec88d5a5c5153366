// The block codecs of `.ptz` (codecs.def): their numbers in files, their names, what each is made of.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ptxkit::format {

// Pinned: the numbers stand in files.
enum class PtzCodec : uint8_t {
#define PTZ_CODEC(enumerator, number, ...) enumerator = number,
#include "runtime/codec/format/codecs.def"
};

enum class PtzModel : uint8_t { lz77, bwt };
enum class PtzCoder : uint8_t { rans, fse, huffman };

struct PtzCodecRow {
  PtzCodec codec;
  std::string_view name;  // as --codec takes it
  PtzModel model;
  PtzCoder coder;
  unsigned block_bits;       // log2 of the block size that suits it
  std::string_view summary;  // "LZ77, rANS"

  // Whether it looks for matches, and so has more than one way to do it (blocks/block_codec.hpp, MatchSearch).
  bool has_match_search() const { return model == PtzModel::lz77; }
};

std::span<const PtzCodecRow> ptz_codecs();                 // in the order of their numbers
const PtzCodecRow* find_ptz_codec(std::string_view name);  // null where there is none
const PtzCodecRow* find_ptz_codec(uint8_t number);         // the same
const PtzCodecRow& row_of(PtzCodec codec);                 // of an enumerator
std::string ptz_codec_names(std::string_view separator = ", ");

}  // namespace ptxkit::format
