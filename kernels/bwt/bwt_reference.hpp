// Scalar references of the BWT kernels.
#pragma once

#include <span>

#include "kernels/bwt/abi.hpp"
#include "kernels/transform_abi.hpp"

namespace ptxkit::kernels {

// Writes the BWT block of `src` to `dst`. item_too_large if `src` is above kMaxBwtBytes, output_overrun if `dst` is
// shorter than bwt_block_bytes.
TransformOutcome bwt_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

// Decodes a BWT block. The status is ok only if `src` is what bwt_reference makes of the result. bad_table means a row
// out of range, or a row that occurs twice for the block's beginning; corrupt means that a segment's walk does not end
// in the row of the segment's beginning.
TransformOutcome bwt_inverse_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

}  // namespace ptxkit::kernels
