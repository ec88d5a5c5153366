// Scalar reference of the kernel `zstd_choose`, for one block: which matches of a parse are coded, and by which offset.
#pragma once

#include <span>
#include <vector>

#include "kernels/lz4/lz4_compress_reference.hpp"
#include "kernels/zstd/zstd_sequences_reference.hpp"

namespace ptxkit::kernels {

struct ZstdParts {
  std::vector<uint8_t> literals;
  std::vector<ZstdSequence> sequences;
};

// Goes over the matches in order. If a match is as long at one of the block's last three offsets, it gets that offset,
// the most recent one first; offsets from before the block are never repeated. A match is left out, and its bytes
// become literals, if they cost less as such: the bits of a byte on average, by the block's counts of bytes, against
// kZstdMatchCostBits and log2 of the offset, or 1 for a repeat offset (zstd_log2, to 1/256 bit).
ZstdParts zstd_choose_reference(std::span<const uint8_t> src, std::span<const Lz4Sequence> matches);

}  // namespace ptxkit::kernels
