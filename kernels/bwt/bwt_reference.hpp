// What the BWT kernels compute, stated for one thread.
#pragma once

#include <span>

#include "kernels/bwt/abi.hpp"

namespace ptxkit::kernels {

// The BWT block of `src`. item_too_large above kMaxBwtBytes, output_overrun where `dst` is shorter than
// bwt_block_bytes.
TransformOutcome bwt_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

// The raw bytes of a BWT block. ok means that `src` is what bwt_reference makes of them: any other block fails, with
// bad_table for a row that is none or stands twice for the block's beginning, and corrupt where a segment does not end
// in the row of its beginning.
TransformOutcome bwt_inverse_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

}  // namespace ptxkit::kernels
