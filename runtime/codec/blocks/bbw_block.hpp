// The block codec `bbw`: Burrows-Wheeler transform, move to front, zero-run coding, rANS.
#pragma once

#include <vector>

#include "kernels/entropy/rans_format.hpp"
#include "runtime/codec/format/byte_stream.hpp"

namespace ptxkit::codec {

// The zero-run coded bytes are split into sections, each with its own frequency table.
inline constexpr size_t kBbwSectionBytes = 32768;
inline constexpr kernels::RansWarpOptions kBbwSectionOptions{.scale_bits = 12, .chunk_bits = 15};

// See encode_block and decode_block in block_codec.hpp.
std::vector<uint8_t> encode_bbw_block(format::Bytes raw);
bool decode_bbw_block(format::Bytes coded, format::MutableBytes raw);

}  // namespace ptxkit::codec
