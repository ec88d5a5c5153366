// Scalar reference of the first half of `deflate_encode`: which matches of a parse are coded, and all tokens in order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/lz4/lz4_compress_reference.hpp"

namespace ptxkit::kernels {

// Goes over the matches, none of which begins farther back than kDeflateWindowBytes. A match is left out, and its bytes
// become literals, if they cost less as such: the bits of a byte on average, by the counts of all bytes of `src`,
// against kDeflateMatchCostBits and the extra bits of the distance. A match above kDeflateMaxMatch becomes several
// (deflate_next_length).
std::vector<uint32_t> deflate_tokens_reference(std::span<const uint8_t> src, std::span<const Lz4Sequence> matches);

}  // namespace ptxkit::kernels
