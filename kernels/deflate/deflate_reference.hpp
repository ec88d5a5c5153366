// Scalar reference of the encoder of Deflate: what the kernels deflate_match or deflate_match_high and deflate_encode
// make of an item.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/deflate/deflate_encode_format.hpp"
#include "kernels/lz4/lz4_compress_reference.hpp"

namespace ptxkit::kernels {

// A stream of one block that holds `src` (of two, if 65536 bytes are stored), at most deflate_max_item_bytes(framing),
// in its framing. `variant` is kHighVariant, as deflate_match_high, or kChunkVariant. A member of gzip has no name and
// no time.
std::vector<uint8_t> deflate_reference(std::span<const uint8_t> src, const Lz4CompressVariant& variant,
                                       DeflateFraming framing);

}  // namespace ptxkit::kernels
