// Scalar reference of the kernel `zstd_literals`, for one block: the literals section (RFC 8878, 3.1.1.3.1).
#pragma once

#include <span>

#include "kernels/transform_abi.hpp"
#include "kernels/zstd/zstd_format.hpp"

namespace ptxkit::kernels {

// The section of `src`, at most kZstdMaxLiterals bytes: a run of one byte if they are all equal; else Huffman codes of
// at most kZstdMaxCodeBits bits if that is smaller; else the literals as they are. The code lengths are those of
// huffman_reference.hpp. Their weights are packed by halves of bytes, or coded by FSE if that is smaller. Fewer than
// kZstdSingleStreamBytes literals make one stream, others four.
TransformOutcome zstd_literals_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

// The largest section of `literal_count` literals.
constexpr uint64_t zstd_literals_bound(uint64_t literal_count) { return literal_count + 3; }

}  // namespace ptxkit::kernels
