// What the kernels `mtf_encode` and `mtf_decode` compute, stated for one thread.
#pragma once

#include <span>

#include "kernels/bwt/abi.hpp"

namespace ptxkit::kernels {

// Move to front: every byte becomes its place in a list of all bytes, at first 0 to 255 in order, and goes to the
// list's front. item_too_large above kMaxBwtBytes, output_overrun where `dst` is shorter than `src`; they may be the
// same.
TransformOutcome mtf_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);
TransformOutcome mtf_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

}  // namespace ptxkit::kernels
