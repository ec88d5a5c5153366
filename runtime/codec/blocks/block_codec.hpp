// The block codecs of `.ptz`. LZ77: match finding, demultiplexing into five streams, an entropy coder for each stream.
// BWT: move to front, zero-run coding, rANS. Planes: typed rANS.
#pragma once

#include <vector>

#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/ptz.hpp"

namespace ptxkit::codec {

// How the LZ77 codecs search for matches; other codecs ignore it. chains: the longest of 64 candidates. tables: the
// longest of five, several times as fast on a GPU, for blocks that are some 8 % larger (docs/lz77.md).
enum class MatchSearch { chains, tables };

// Encodes `raw`, 1 to 2^kPtzMaxBlockBits bytes. Returns an empty vector if the coded form would not be shorter. The
// bytes are the same on every run and machine.
std::vector<uint8_t> encode_block(const format::PtzCoding& codec, format::Bytes raw,
                                  MatchSearch search = MatchSearch::chains);

// Decodes `coded` into exactly `raw`. False if `coded` is damaged; writes nothing outside `raw`.
bool decode_block(const format::PtzCoding& codec, format::Bytes coded, format::MutableBytes raw);

// The memory that the two functions need at most for a block of `raw_bytes`, beside `raw` and `coded`, in bytes.
size_t encoding_bytes(const format::PtzCoding& codec, size_t raw_bytes);
size_t decoding_bytes(const format::PtzCoding& codec, size_t raw_bytes);

}  // namespace ptxkit::codec
