#include "kernels/entropy/frequencies_reference.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/entropy/little_endian.hpp"

namespace ptxkit::kernels {

std::array<uint32_t, kSymbols> count_bytes(std::span<const uint8_t> bytes) {
  // Four tables, so that increments in runs of equal bytes do not depend on each other.
  std::array<std::array<uint32_t, kSymbols>, 4> tables{};
  size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    for (size_t lane = 0; lane < 4; ++lane) ++tables[lane][bytes[at + lane]];
  }
  for (; at < bytes.size(); ++at) ++tables[0][bytes[at]];
  std::array<uint32_t, kSymbols> counts{};
  for (uint32_t s = 0; s < kSymbols; ++s) counts[s] = tables[0][s] + tables[1][s] + tables[2][s] + tables[3][s];
  return counts;
}

std::array<uint16_t, kSymbols> normalise_frequencies(const std::array<uint32_t, kSymbols>& counts,
                                                     uint32_t scale_bits) {
  std::array<uint16_t, kSymbols> frequencies{};
  const uint64_t total = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  if (total == 0) return frequencies;
  std::array<uint64_t, kSymbols> lost{};  // the remainders of rounding down, in units of 1 / total
  int64_t missing = int64_t{1} << scale_bits;
  for (uint32_t s = 0; s < kSymbols; ++s) {
    if (counts[s] == 0) continue;
    const uint64_t exact = uint64_t{counts[s]} << scale_bits;
    const bool raised = exact < total;
    frequencies[s] = static_cast<uint16_t>(raised ? 1 : exact / total);
    if (!raised) lost[s] = exact % total;
    missing -= frequencies[s];
  }
  for (; missing > 0; --missing) {
    const auto most = std::max_element(lost.begin(), lost.end());
    ++frequencies[static_cast<size_t>(most - lost.begin())];
    *most = 0;
  }
  for (; missing < 0; ++missing) --*std::max_element(frequencies.begin(), frequencies.end());
  return frequencies;
}

size_t table_bytes(const std::array<uint16_t, kSymbols>& frequencies) {
  const auto absent = std::count(frequencies.begin(), frequencies.end(), uint16_t{0});
  return kTableMaskBytes + 2 * (kSymbols - static_cast<size_t>(absent));
}

void write_table(const std::array<uint16_t, kSymbols>& frequencies, uint8_t* to) {
  uint8_t* next = to + kTableMaskBytes;
  std::fill_n(to, kTableMaskBytes, uint8_t{0});
  for (uint32_t s = 0; s < kSymbols; ++s) {
    if (frequencies[s] == 0) continue;
    to[s / 8] = static_cast<uint8_t>(to[s / 8] | 1u << s % 8);
    write_u16(next, frequencies[s]);
    next += 2;
  }
}

TableRead read_table(std::span<const uint8_t> src, uint32_t sum, std::array<uint16_t, kSymbols>& frequencies) {
  if (src.size() < kTableMaskBytes) return TableRead::cut_off;
  size_t next = kTableMaskBytes;
  uint32_t seen = 0;
  bool good = true;
  for (uint32_t s = 0; s < kSymbols; ++s) {
    frequencies[s] = 0;
    if ((src[s / 8] >> s % 8 & 1) == 0) continue;
    if (src.size() - next < 2) return TableRead::cut_off;
    frequencies[s] = static_cast<uint16_t>(read_u16(src.data() + next));
    next += 2;
    good &= frequencies[s] != 0;
    seen += frequencies[s];
  }
  return good && seen == sum ? TableRead::good : TableRead::bad;
}

}  // namespace ptxkit::kernels
