// Scalar references of the LZ77 kernels.
#pragma once

#include <span>
#include <vector>

#include "kernels/lz77/abi.hpp"

namespace ptxkit::kernels {

using LzMatches = std::vector<LzMatch>;

LzMatches lz77_link_reference(std::span<const uint8_t> src);
LzMatches lz77_hash_reference(std::span<const uint8_t> src);  // lz77_link and lz77_hash
LzMatches lz77_table_reference(std::span<const uint8_t> src);
LzMatches lz77_batch_reference(std::span<const uint8_t> src);
LzMatches lz77_lazy_reference(const LzMatches& matches);
LzMatches lz77_per_position_reference(std::span<const uint8_t> src, uint32_t window);
LzMatches lz77_topk_reference(std::span<const uint8_t> src);  // kLzTopK for each position

// The LZ block of `src`, parsed greedily with `matches`.
std::vector<uint8_t> demux_reference(std::span<const uint8_t> src, const LzMatches& matches);

TransformOutcome lz77_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

}  // namespace ptxkit::kernels
