// Known bits: each bit of a value is known to be 0, known to be 1, or unknown.
//
// The low known bits give the value modulo a power of two, which is its alignment; the high ones bound it. All
// operations work on 64 bits; `truncate` cuts a result to the width of its register. The join of two facts keeps the
// bits known to both. Addition follows the carry argument of LLVM's KnownBits.
#pragma once

#include <bit>
#include <cstdint>

namespace ptxkit::flow {

constexpr uint64_t low_mask(unsigned bits) { return bits >= 64 ? ~0ull : (1ull << bits) - 1; }

struct Bits {
  uint64_t zero = 0;  // known to be 0
  uint64_t one = 0;   // known to be 1

  static constexpr Bits constant(uint64_t value) { return {~value, value}; }
  bool operator==(const Bits&) const = default;

  uint64_t known() const { return zero | one; }
  unsigned known_low() const { return static_cast<unsigned>(std::countr_one(known())); }  // number of known low bits
  unsigned trailing_zeros() const { return static_cast<unsigned>(std::countr_one(zero)); }
  uint64_t minimum() const { return one; }
  uint64_t maximum() const { return ~zero; }
  // The value modulo 2^known_low().
  uint64_t low_value() const { return one & low_mask(known_low()); }
};

Bits join(Bits a, Bits b);
Bits truncate(Bits a, unsigned width);     // clears the bits from `width` on
Bits sign_extend(Bits a, unsigned width);  // copies bit width-1 to the bits from `width` on
Bits bit_and(Bits a, Bits b);
Bits bit_or(Bits a, Bits b);
Bits bit_xor(Bits a, Bits b);
Bits bit_not(Bits a);
Bits add(Bits a, Bits b);
Bits subtract(Bits a, Bits b);
Bits multiply(Bits a, Bits b);
Bits shift_left(Bits a, unsigned count);   // count < 64
Bits shift_right(Bits a, unsigned count);  // logical
Bits shift_right_signed(Bits a, unsigned count, unsigned width);
Bits below(uint64_t limit);  // of a value in [0, limit]

}  // namespace ptxkit::flow
