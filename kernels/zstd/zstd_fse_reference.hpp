// FSE tables as Zstandard has them (RFC 8878, 4.1): the description of a distribution, and an encoder's states.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/zstd/zstd_format.hpp"

namespace ptxkit::kernels {

// A distribution of symbols over 2^bits states. A frequency of -1 takes one state, at the end of the table.
struct ZstdDistribution {
  uint32_t bits = 0;
  std::vector<int> frequencies;  // of each symbol up to the last that occurs
};

// The accuracy of an own table for `total` symbols of which `distinct` differ: floor(log2(total - 1)) - 2, at least 5
// and as many as give each symbol a state, at most `max_bits`.
uint32_t zstd_table_bits(uint32_t total, uint32_t distinct, uint32_t max_bits);

// The distribution of `counts`, which has no 0 at its end: normalise_frequencies of frequencies_reference.hpp.
ZstdDistribution zstd_distribution(std::span<const uint32_t> counts, uint32_t bits);

// The predefined distribution of a kind.
ZstdDistribution zstd_predefined(ZstdKind kind);

// The description of a table (4.1.1).
std::vector<uint8_t> zstd_describe(const ZstdDistribution& distribution);

// log2 of a value above 0, in 1/256: log2(2^n (1 + m)) as n + m + 88/256 m (1 - m).
uint32_t zstd_log2(uint32_t value);

// The cost of a symbol of frequency `frequency` (not 0) among 2^bits, in 1/256 bit.
uint32_t zstd_symbol_cost(int frequency, uint32_t bits);

// States of an encoder, from the last symbol to the first.
class ZstdFseEncoder {
 public:
  explicit ZstdFseEncoder(const ZstdDistribution& distribution);

  struct Field {
    uint32_t value, bits;
  };
  // Goes to a state of the last symbol, which emits nothing: the first of its places.
  void begin(uint32_t symbol) { state_ = next_[starts_[symbol]]; }
  // Codes a symbol before the one that was coded last, and returns what is to be emitted.
  Field code(uint32_t symbol);
  // What the decoder begins with.
  Field end() const { return {state_ - (1u << bits_), bits_}; }

 private:
  uint32_t bits_;
  std::vector<uint32_t> frequencies_;
  std::vector<uint32_t> starts_;  // of each symbol's places in next_
  std::vector<uint32_t> next_;    // the states of each symbol, in ascending order
  uint32_t state_ = 0;
};

}  // namespace ptxkit::kernels
