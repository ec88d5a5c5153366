// Scalar references of the kernels `zero_runs_encode` and `zero_runs_decode`.
#pragma once

#include <span>

#include "kernels/bwt/abi.hpp"
#include "kernels/transform_abi.hpp"

namespace ptxkit::kernels {

// A run of r zeros is coded as r in bijective base 2, lowest digit first, with the digits 1 and 2 as the bytes 0 and 1.
// Any other byte b is coded as b + 1, but 254 and 255 as 255 followed by 0 or 1. item_too_large if `src` is above
// kMaxBwtBytes, output_overrun if `dst` is too short; zero_runs_bound always suffices.
TransformOutcome zero_runs_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);
constexpr uint32_t zero_runs_bound(uint32_t raw_bytes) { return 2 * raw_bytes; }

// The inverse. item_too_large if `src` is above zero_runs_bound(kMaxBwtBytes). corrupt if 255 is followed by neither 0
// nor 1, or if a run has more than kMaxRunDigits digits. Otherwise output_overrun if the result is longer than `dst` or
// kMaxBwtBytes.
inline constexpr uint32_t kMaxRunDigits = 20;  // the digits of a run of kMaxBwtBytes
TransformOutcome zero_runs_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

}  // namespace ptxkit::kernels
