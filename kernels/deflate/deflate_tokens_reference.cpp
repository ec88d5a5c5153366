#include "kernels/deflate/deflate_tokens_reference.hpp"

#include <algorithm>
#include <bit>

#include "kernels/deflate/deflate_encode_format.hpp"
#include "kernels/entropy/frequencies_reference.hpp"

namespace ptxkit::kernels {
namespace {

// log2 of a value above 0, in 1/256; between powers of two a straight line.
uint32_t log2_of(uint32_t value) {
  const auto zeros = static_cast<uint32_t>(std::countl_zero(value));
  return ((31 - zeros) << 8) + ((value << zeros) >> 23 & 0xFF);
}

// What a byte costs on average as a literal, in 1/256 bit.
uint32_t literal_cost(std::span<const uint8_t> src) {
  const auto size = static_cast<uint32_t>(src.size());
  uint32_t cost = 0;
  for (const uint32_t count : count_bytes(src)) {
    if (count != 0) cost += count * (log2_of(size) - log2_of(count));
  }
  return std::max(cost / size, kDeflateLeastLiteralCost);
}

}  // namespace

std::vector<uint32_t> deflate_tokens_reference(std::span<const uint8_t> src, std::span<const Lz4Sequence> matches) {
  std::vector<uint32_t> tokens;
  if (src.empty()) return tokens;
  const uint32_t byte_cost = literal_cost(src);
  size_t end = 0, at = 0;  // of the last match that is coded, and of the last match
  const auto append_literals = [&](size_t to) { tokens.insert(tokens.end(), src.begin() + end, src.begin() + to); };
  for (const Lz4Sequence& match : matches) {
    const size_t start = at + match.literal_count;
    at = start + match.match_length;
    const uint32_t extra_bits = deflate_distance_code(deflate_code_of_distance(match.offset)).bits;
    if (match.match_length * byte_cost < (extra_bits + kDeflateMatchCostBits) << 8) continue;
    append_literals(start);
    for (uint32_t rest = match.match_length; rest != 0; rest -= deflate_next_length(rest))
      tokens.push_back(deflate_match_token(deflate_next_length(rest), match.offset));
    end = at;
  }
  append_literals(src.size());
  return tokens;
}

}  // namespace ptxkit::kernels
