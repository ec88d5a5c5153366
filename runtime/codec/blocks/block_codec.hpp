// The block codecs of `.ptz`: LZ77, demux, and an entropy coder for each of the five streams; or BWT, move to front,
// rANS.
#pragma once

#include <vector>

#include "runtime/codec/format/ptz.hpp"

namespace ptxkit::codec {

// How the codecs of LZ77 look for matches; the others ignore it. chains: the longest of 64 candidates. tables: the
// longest of five: several times as fast on a GPU, for blocks that are some 8 % larger (docs/lz77.md).
enum class MatchSearch { chains, tables };

// The coded form of `raw`, at most 2^kPtzMaxBlockBits bytes and not empty; empty when it would not be shorter. The same
// bytes on every run and machine.
std::vector<uint8_t> encode_block(format::PtzCodec codec, format::Bytes raw, MatchSearch search = MatchSearch::chains);

// Decodes into exactly `raw`. False where `coded` is damaged; nothing outside the two is touched.
bool decode_block(format::PtzCodec codec, format::Bytes coded, format::MutableBytes raw);

// What the two take at most for a block of so many bytes, beside `raw` and `coded`, in bytes of memory.
size_t encoding_bytes(format::PtzCodec codec, size_t raw_bytes);
size_t decoding_bytes(format::PtzCodec codec, size_t raw_bytes);

}  // namespace ptxkit::codec
