// Symbol frequencies scaled to a power of two, for rANS and FSE.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace ptxkit::kernels {

inline constexpr uint32_t kSymbols = 256;

std::array<uint32_t, kSymbols> count_bytes(std::span<const uint8_t> bytes);

// Returns frequencies that sum to 2^scale_bits, with none 0 whose count is not; all 0 if all counts are. The counts
// must sum to less than 2^24, and at most 2^scale_bits of them may be above 0.
//
// Each symbol gets count * 2^scale_bits / total, rounded down, but at least 1. If the sum is too small, one unit each
// goes to the symbols with the largest remainders. If it is too large, single units are taken from the symbol that has
// the largest frequency at that time. Of equal symbols the lowest comes first.
std::array<uint16_t, kSymbols> normalise_frequencies(const std::array<uint32_t, kSymbols>& counts, uint32_t scale_bits);

// A table in a stream: 32 bytes in which bit s % 8 of byte s / 8 says that symbol s has a frequency, then these
// frequencies, u16 each.
inline constexpr uint32_t kTableMaskBytes = kSymbols / 8;
inline constexpr uint32_t kMaxTableBytes = kTableMaskBytes + 2 * kSymbols;
size_t table_bytes(const std::array<uint16_t, kSymbols>& frequencies);
void write_table(const std::array<uint16_t, kSymbols>& frequencies, uint8_t* to);

enum class TableRead : uint8_t { good, cut_off, bad };
// Reads the table at the start of `src`. It is good if it is complete, sums to `sum` and has no frequency of 0.
TableRead read_table(std::span<const uint8_t> src, uint32_t sum, std::array<uint16_t, kSymbols>& frequencies);

}  // namespace ptxkit::kernels
