// Known bits: for each bit of a value whether it is surely 0, surely 1, or not known.
//
// The low known bits are a congruence modulo a power of two, which is what alignment is; the high ones bound a value.
// All operations work on 64 bits; `truncate` cuts a result to its register's width. The join of two facts keeps what
// both know. Addition follows the carry argument of LLVM's KnownBits.
#pragma once

#include <bit>
#include <cstdint>

namespace ptxkit::flow {

constexpr uint64_t low_mask(unsigned bits) { return bits >= 64 ? ~0ull : (1ull << bits) - 1; }

struct Bits {
  uint64_t zero = 0;  // surely 0
  uint64_t one = 0;   // surely 1

  static constexpr Bits constant(uint64_t value) { return {~value, value}; }
  bool operator==(const Bits&) const = default;

  uint64_t known() const { return zero | one; }
  unsigned known_low() const { return static_cast<unsigned>(std::countr_one(known())); }  // length of the known tail
  unsigned trailing_zeros() const { return static_cast<unsigned>(std::countr_one(zero)); }
  uint64_t minimum() const { return one; }
  uint64_t maximum() const { return ~zero; }
  // Modulo 2^known_low().
  uint64_t low_value() const { return one & low_mask(known_low()); }
};

Bits join(Bits a, Bits b);
Bits truncate(Bits a, unsigned width);     // bits from `width` on become 0
Bits sign_extend(Bits a, unsigned width);  // bits from `width` on become copies of bit width-1
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
Bits below(uint64_t limit);  // what is known of a value in [0, limit]

}  // namespace ptxkit::flow
