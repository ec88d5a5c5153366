// Products and sums of numbers that come from outside: what does not fit is the largest number, which no limit admits.
#pragma once

#include <cstdint>
#include <limits>

namespace ptxkit {

constexpr uint64_t saturating_product(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<uint64_t>::max() : product;
}
// A factor of 0 makes it 0, whatever the others are.
template <class... Rest>
constexpr uint64_t saturating_product(uint64_t a, uint64_t b, Rest... rest) {
  if (((rest == 0) || ...)) return 0;
  return saturating_product(saturating_product(a, b), rest...);
}

constexpr uint64_t saturating_sum(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<uint64_t>::max() : sum;
}

}  // namespace ptxkit
