// What the kernels `fse_encode` and `fse_decode` compute, stated for one item.
#pragma once

#include <span>

#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/lane_format.hpp"

namespace ptxkit::kernels {

TransformOutcome fse_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst, const FseOptions& options);
TransformOutcome fse_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

// Bytes that a stream of `raw_bytes` takes at most: each lane has its last state, and may fill up to a byte.
constexpr uint64_t fse_bound(uint64_t raw_bytes) {
  return kLanedHeaderBytes + 1 + kMaxTableBytes + kLaneSizesBytes + 3 * uint64_t{kBitLanes} +
         (raw_bytes * kMaxAccuracyBits + 7) / 8;
}

}  // namespace ptxkit::kernels
