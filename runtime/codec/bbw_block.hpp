// The block codec `bbw`: Burrows-Wheeler transform, move to front, rANS.
#pragma once

#include <vector>

#include "runtime/format/byte_stream.hpp"

namespace ptxkit::codec {

// As encode_block and decode_block in block_codec.hpp.
std::vector<std::uint8_t> encode_bbw_block(format::Bytes raw);
bool decode_bbw_block(format::Bytes coded, format::MutableBytes raw);

}  // namespace ptxkit::codec
