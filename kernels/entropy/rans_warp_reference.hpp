// What the kernels `rans_warp_encode` and `rans_warp_decode` compute, stated for one item.
#pragma once

#include <span>

#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/rans_format.hpp"

namespace ptxkit::kernels {

// Codes `src` into `dst`. output_overrun when `dst` is too small: rans_warp_bound says what always suffices.
TransformOutcome rans_warp_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst,
                                            const RansWarpOptions& options);

// Decodes the stream `src`, by any encoder, into `dst`. Its structure is checked before a byte is written.
TransformOutcome rans_warp_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

// Bytes that a stream of `raw_bytes` takes at most.
constexpr uint64_t rans_warp_bound(uint64_t raw_bytes, const RansWarpOptions& options) {
  const uint64_t chunks = (raw_bytes >> options.chunk_bits) + 1;
  return kRansWarpHeaderBytes + kMaxTableBytes + chunks * (4 + 4 * kRansWarpLanes) + 2 * raw_bytes;
}

}  // namespace ptxkit::kernels
