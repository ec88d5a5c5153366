// A step of the rANS encoder with a multiplication instead of the division. With q = x / f,
//   q * 2^s + x mod f + start = x + start + q * (2^s - f).
// q is the high half of x times 2^64 / f, rounded up; this is exact because x is below 2^32 and f is at most 2^14.
#pragma once

#include <array>
#include <tuple>

#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/rans_format.hpp"

namespace ptxkit::cpu {

struct RansSymbol {
  uint64_t reciprocal;
  uint64_t limit;  // a state of at least this emits a word first
  // The start of the symbol's interval. With f = 1 the reciprocal gives x - 1 instead of x, so the bias adds 2^s - f.
  uint32_t bias;
  uint32_t complement;  // 2^s - f
};
using RansSymbols = std::array<RansSymbol, kernels::kSymbols>;

inline RansSymbols rans_symbols(const std::array<uint16_t, kernels::kSymbols>& frequencies, uint32_t scale_bits) {
  RansSymbols symbols{};
  uint32_t start = 0;
  for (uint32_t s = 0; s < kernels::kSymbols; ++s) {
    const uint32_t f = frequencies[s];
    if (f == 0) continue;
    const uint32_t complement = (1u << scale_bits) - f;
    symbols[s] = {.reciprocal = f == 1 ? ~uint64_t{0} : ~uint64_t{0} / f + 1,
                  .limit = uint64_t{f} << (32 - scale_bits),
                  .bias = f == 1 ? start + complement : start,
                  .complement = complement};
    start += f;
  }
  return symbols;
}

// Encodes a symbol. A word that the state emits goes directly before `word`.
inline void code_symbol(const RansSymbol& symbol, uint32_t& state, uint16_t*& word) {
  __extension__ using Wide = unsigned __int128;
  uint32_t x = state;
  const bool leaves = x >= symbol.limit;
  word[-1] = static_cast<uint16_t>(x);
  word -= leaves;
  x ^= (x ^ x >> 16) & (0u - leaves);  // branch-free: the outcome is unpredictable
  const auto quotient = static_cast<uint32_t>(static_cast<Wide>(x) * symbol.reciprocal >> 64);
  state = x + symbol.bias + quotient * symbol.complement;
}

}  // namespace ptxkit::cpu
