// A step of the rANS encoder with a multiplication in place of the division: with q = x / f,
//   q * 2^s + x mod f + start = x + start + q * (2^s - f).
// q is the high half of x times 2^64 / f rounded up, which is exact as x is below 2^32 and f at most 2^14.
#pragma once

#include <array>

#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/rans_format.hpp"

namespace ptxkit::cpu {

struct RansSymbol {
  uint64_t reciprocal;
  uint64_t limit;       // a state of at least this gives up a word first
  uint32_t bias;        // start; of a frequency of 1 more, as its reciprocal gives one less than x
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

// Codes a symbol; the word it gives up, if any, goes in front of `word`.
inline void code_symbol(const RansSymbol& symbol, uint32_t& state, uint16_t*& word) {
  __extension__ using Wide = unsigned __int128;
  uint32_t x = state;
  const bool leaves = x >= symbol.limit;
  word[-1] = static_cast<uint16_t>(x);
  word -= leaves;
  x ^= (x ^ x >> 16) & (0u - leaves);  // no branch, which nobody could predict
  const auto quotient = static_cast<uint32_t>(static_cast<Wide>(x) * symbol.reciprocal >> 64);
  state = x + symbol.bias + quotient * symbol.complement;
}

}  // namespace ptxkit::cpu
