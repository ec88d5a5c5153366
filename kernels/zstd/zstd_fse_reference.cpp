#include "kernels/zstd/zstd_fse_reference.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>

#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/lane_format.hpp"
#include "kernels/zstd/zstd_bits_reference.hpp"

namespace ptxkit::kernels {

uint32_t zstd_table_bits(uint32_t total, uint32_t distinct, uint32_t max_bits) {
  const auto log2 = [](uint32_t value) { return static_cast<uint32_t>(std::bit_width(value | 1)) - 1; };
  const uint32_t wanted = log2(std::max(total - 1, 4u)) - 2;
  const auto needed = static_cast<uint32_t>(std::bit_width(distinct - 1));
  return std::min(std::max({wanted, needed, kZstdMinTableBits}), max_bits);
}

ZstdDistribution zstd_distribution(std::span<const uint32_t> counts, uint32_t bits) {
  std::array<uint32_t, kSymbols> all{};
  std::copy(counts.begin(), counts.end(), all.begin());
  const auto frequencies = normalise_frequencies(all, bits);
  return {bits, {frequencies.begin(), frequencies.begin() + static_cast<ptrdiff_t>(counts.size())}};
}

ZstdDistribution zstd_predefined(ZstdKind kind) {
  const auto& limits = kZstdKindLimits[static_cast<size_t>(kind)];
  const auto& frequencies = kZstdPredefined[static_cast<size_t>(kind)];
  return {limits.predefined_bits, {frequencies.begin(), frequencies.begin() + limits.symbols}};
}

std::vector<uint8_t> zstd_describe(const ZstdDistribution& distribution) {
  ZstdBits bits;
  bits.append(distribution.bits - kZstdMinTableBits, 4);
  const auto& frequencies = distribution.frequencies;
  uint32_t left = (1u << distribution.bits) + 1;  // one more than what the symbols to come share
  for (size_t symbol = 0; left > 1;) {
    const uint32_t frequency = static_cast<uint32_t>(std::abs(frequencies[symbol]));
    const uint32_t value = static_cast<uint32_t>(frequencies[symbol] + 1);  // 0 to `left`
    const auto width = static_cast<uint32_t>(std::bit_width(left));
    // The smallest values are coded in a bit less.
    const uint32_t half = 1u << (width - 1), short_count = 2 * half - 1 - left;
    if (value < short_count) {
      bits.append(value, width - 1);
    } else {
      bits.append(value >= half ? value + short_count : value, width);
    }
    left -= frequency;
    ++symbol;
    if (value != 1) continue;
    // A frequency of 0 is followed by the number of further zeros, by threes.
    size_t zeros = 0;
    while (frequencies[symbol + zeros] == 0) ++zeros;
    symbol += zeros;
    for (; zeros >= 3; zeros -= 3) bits.append(3, 2);
    bits.append(static_cast<uint32_t>(zeros), 2);
  }
  return std::move(bits).padded();
}

uint32_t zstd_log2(uint32_t value) {
  const auto whole = (static_cast<uint32_t>(std::bit_width(value | 1)) - 1) & 31;
  const auto part = static_cast<uint32_t>(uint64_t{value} << 8 >> whole) & 0xFF;
  return (whole << 8) + part + (part * (256 - part) * 88 >> 16);
}

uint32_t zstd_symbol_cost(int frequency, uint32_t bits) {
  return (bits << 8) - zstd_log2(static_cast<uint32_t>(std::abs(frequency)));
}

ZstdFseEncoder::ZstdFseEncoder(const ZstdDistribution& distribution)
    : bits_(distribution.bits), starts_(distribution.frequencies.size()), next_(size_t{1} << distribution.bits) {
  const uint32_t states = 1u << bits_;
  std::vector<uint32_t> symbols(states);
  uint32_t end = states;  // from here on are the symbols of less than one
  for (uint32_t s = 0; s < distribution.frequencies.size(); ++s) {
    frequencies_.push_back(static_cast<uint32_t>(std::abs(distribution.frequencies[s])));
    if (distribution.frequencies[s] < 0) symbols[--end] = s;
  }
  uint32_t place = 0;
  for (uint32_t s = 0; s < distribution.frequencies.size(); ++s) {
    for (int i = 0; i < distribution.frequencies[s]; ++i) {
      symbols[place] = s;
      do place = (place + spread_step(states)) & (states - 1);
      while (place >= end);
    }
  }
  std::exclusive_scan(frequencies_.begin(), frequencies_.end(), starts_.begin(), 0u);
  auto at = starts_;
  for (place = 0; place < states; ++place) next_[at[symbols[place]]++] = states + place;
}

ZstdFseEncoder::Field ZstdFseEncoder::code(uint32_t symbol) {
  const uint32_t frequency = frequencies_[symbol];
  auto count = static_cast<uint32_t>(std::bit_width(state_) - std::bit_width(frequency));
  if (state_ >> count < frequency) --count;
  const Field field{state_ & ((1u << count) - 1), count};
  state_ = next_[starts_[symbol] + (state_ >> count) - frequency];
  return field;
}

}  // namespace ptxkit::kernels
