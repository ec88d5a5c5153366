// Products and sums of numbers from untrusted input. Overflow gives the largest number, which exceeds every limit.
#pragma once

#include <cstdint>
#include <limits>

namespace ptxkit {

constexpr uint64_t saturating_product(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<uint64_t>::max() : product;
}
// 0 if any factor is 0, even if other factors overflow.
template <class... Rest>
constexpr uint64_t saturating_product(uint64_t a, uint64_t b, Rest... rest) {
  if (!(rest && ...)) return 0;
  return saturating_product(saturating_product(a, b), rest...);
}

constexpr uint64_t saturating_sum(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<uint64_t>::max() : sum;
}

}  // namespace ptxkit
