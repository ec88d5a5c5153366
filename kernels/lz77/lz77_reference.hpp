// What the LZ77 kernels compute, stated for one thread.
#pragma once

#include <span>
#include <vector>

#include "kernels/lz77/abi.hpp"

namespace ptxkit::kernels {

using LzMatches = std::vector<LzMatch>;

LzMatches lz77_link_reference(std::span<const uint8_t> src);
LzMatches lz77_hash_reference(std::span<const uint8_t> src);  // with lz77_link
LzMatches lz77_table_reference(std::span<const uint8_t> src);
LzMatches lz77_batch_reference(std::span<const uint8_t> src);
LzMatches lz77_lazy_reference(const LzMatches& matches);
LzMatches lz77_per_position_reference(std::span<const uint8_t> src, uint32_t window);
LzMatches lz77_topk_reference(std::span<const uint8_t> src);  // kLzTopK a position

// The LZ block of `src` parsed with `matches`, first come first served.
std::vector<uint8_t> demux_reference(std::span<const uint8_t> src, const LzMatches& matches);

TransformOutcome lz77_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

}  // namespace ptxkit::kernels
