// Scalar reference of the Zstandard encoder: blocks and frames (RFC 8878, 3.1.1) of the sections that
// zstd_literals_reference and zstd_sequences_reference make.
#pragma once

#include <span>
#include <vector>

#include "kernels/lz4/lz4_compress_reference.hpp"
#include "kernels/zstd/zstd_format.hpp"

namespace ptxkit::kernels {

// The block of `src`, 1 to kZstdBlockBytes, with its header: the matches are those of `variant`, kChunkVariant or
// kHighVariant. Bytes that are all equal make an RLE block, and what is not smaller when compressed a raw one.
std::vector<uint8_t> zstd_block_reference(std::span<const uint8_t> src, const Lz4CompressVariant& variant,
                                          bool is_last);

// One frame of `src` with its size in the header: blocks of kZstdBlockBytes that do not refer to each other, and
// XXH64's low half behind them if `with_checksum`.
std::vector<uint8_t> zstd_frame_reference(std::span<const uint8_t> src, const Lz4CompressVariant& variant,
                                          bool with_checksum);

}  // namespace ptxkit::kernels
