#include "analyzer/flow/bits.hpp"

#include <algorithm>

namespace ptxkit::flow {

namespace {

Bits add_with_carry(Bits a, Bits b, bool carry) {
  const uint64_t highest = a.maximum() + b.maximum() + carry;
  const uint64_t lowest = a.minimum() + b.minimum() + carry;
  const uint64_t carry_zero = ~(highest ^ a.zero ^ b.zero);
  const uint64_t carry_one = lowest ^ a.one ^ b.one;
  const uint64_t known = a.known() & b.known() & (carry_zero | carry_one);
  return {~highest & known, lowest & known};
}

}  // namespace

Bits join(Bits a, Bits b) { return {a.zero & b.zero, a.one & b.one}; }

Bits truncate(Bits a, unsigned width) {
  const uint64_t mask = low_mask(width);
  return {a.zero | ~mask, a.one & mask};
}

Bits sign_extend(Bits a, unsigned width) {
  if (width >= 64) return a;
  const uint64_t mask = low_mask(width), sign = 1ull << (width - 1);
  Bits result{a.zero & mask, a.one & mask};
  if (a.zero & sign) result.zero |= ~mask;
  if (a.one & sign) result.one |= ~mask;
  return result;
}

Bits bit_and(Bits a, Bits b) { return {a.zero | b.zero, a.one & b.one}; }
Bits bit_or(Bits a, Bits b) { return {a.zero & b.zero, a.one | b.one}; }
Bits bit_xor(Bits a, Bits b) { return {(a.zero & b.zero) | (a.one & b.one), (a.zero & b.one) | (a.one & b.zero)}; }
Bits bit_not(Bits a) { return {a.one, a.zero}; }
Bits add(Bits a, Bits b) { return add_with_carry(a, b, false); }
Bits subtract(Bits a, Bits b) { return add_with_carry(a, bit_not(b), true); }

// With a = 2^i (a' + 2^m x) and b = 2^j (b' + 2^n y), the product is known modulo 2^(i + j + min(m, n)).
Bits multiply(Bits a, Bits b) {
  const unsigned i = std::min(a.trailing_zeros(), 64u), j = std::min(b.trailing_zeros(), 64u);
  if (i + j >= 64) return Bits::constant(0);
  const unsigned known = std::min(64u, i + j + std::min(a.known_low() - i, b.known_low() - j));
  const uint64_t product = a.low_value() * b.low_value(), mask = low_mask(known);
  Bits result{~product & mask, product & mask};
  // The largest product gives the leading zeros.
  const uint64_t high_a = a.maximum(), high_b = b.maximum();
  if (high_a == 0 || high_b == 0) return Bits::constant(0);
  if (high_a <= ~0ull / high_b) result.zero |= below(high_a * high_b).zero;
  return result;
}

Bits shift_left(Bits a, unsigned count) { return {(a.zero << count) | low_mask(count), a.one << count}; }

Bits shift_right(Bits a, unsigned count) { return {(a.zero >> count) | ~(~0ull >> count), a.one >> count}; }

Bits shift_right_signed(Bits a, unsigned count, unsigned width) {
  const Bits wide = sign_extend(a, width);
  return {static_cast<uint64_t>(static_cast<int64_t>(wide.zero) >> count),
          static_cast<uint64_t>(static_cast<int64_t>(wide.one) >> count)};
}

Bits below(uint64_t limit) {
  const unsigned used = 64 - static_cast<unsigned>(std::countl_zero(limit));
  return {~low_mask(used), 0};
}

}  // namespace ptxkit::flow
