// Scalar references of the kernels `mtf_encode` and `mtf_decode`.
#pragma once

#include <span>

#include "kernels/bwt/abi.hpp"
#include "kernels/transform_abi.hpp"

namespace ptxkit::kernels {

// Move-to-front coding: every byte is coded as its position in a list of all bytes, initially 0 to 255 in order, and
// moves to the front of the list. item_too_large if `src` is above kMaxBwtBytes, output_overrun if `dst` is shorter
// than `src`. `src` and `dst` may be the same memory.
TransformOutcome mtf_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);
TransformOutcome mtf_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

}  // namespace ptxkit::kernels
