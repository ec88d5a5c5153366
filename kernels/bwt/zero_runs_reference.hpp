// What the kernels `zero_runs_encode` and `zero_runs_decode` compute, stated for one thread.
#pragma once

#include <span>

#include "kernels/bwt/abi.hpp"

namespace ptxkit::kernels {

// A run of r zeros becomes r in bijective base 2, lowest digit first, digits 1 and 2 as the bytes 0 and 1; any other
// byte b becomes b + 1, but 254 and 255 become 255 and then 0 or 1. item_too_large above kMaxBwtBytes, output_overrun
// where `dst` is too short: zero_runs_bound always suffices.
TransformOutcome zero_runs_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);
constexpr uint32_t zero_runs_bound(uint32_t raw_bytes) { return 2 * raw_bytes; }

// The inverse. item_too_large above zero_runs_bound(kMaxBwtBytes); corrupt where what follows 255 is neither 0 nor 1,
// and where a run has more than kMaxRunDigits; then output_overrun where the result is longer than `dst` or
// kMaxBwtBytes.
inline constexpr uint32_t kMaxRunDigits = 20;  // a run of kMaxBwtBytes has so many
TransformOutcome zero_runs_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

}  // namespace ptxkit::kernels
