// The block codec `bbw`: Burrows-Wheeler transform, move to front, zero runs, rANS.
#pragma once

#include <vector>

#include "kernels/entropy/rans_format.hpp"
#include "runtime/codec/format/byte_stream.hpp"

namespace ptxkit::codec {

// What zero runs leave is coded in sections, each with frequencies of its own.
inline constexpr size_t kBbwSectionBytes = 32768;
inline constexpr kernels::RansWarpOptions kBbwSectionOptions{.scale_bits = 12, .chunk_bits = 15};

// As encode_block and decode_block in block_codec.hpp.
std::vector<uint8_t> encode_bbw_block(format::Bytes raw);
bool decode_bbw_block(format::Bytes coded, format::MutableBytes raw);

}  // namespace ptxkit::codec
