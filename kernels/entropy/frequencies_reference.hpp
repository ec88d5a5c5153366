// Symbol frequencies scaled to a power of two, for rANS and FSE.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace ptxkit::kernels {

inline constexpr uint32_t kSymbols = 256;

std::array<uint32_t, kSymbols> count_bytes(std::span<const uint8_t> bytes);

// Frequencies that sum to 2^scale_bits, none 0 whose count is not; all 0 when all counts are. The counts sum to less
// than 2^24, and not more of them are above 0 than 2^scale_bits.
//
// Each gets count * 2^scale_bits / total rounded down, but at least 1. What is then missing goes, one each, to those
// that rounding down cost most; what is too much is taken, one at a time, from the largest. Of equals the lowest symbol
// comes first.
std::array<uint16_t, kSymbols> normalise_frequencies(const std::array<uint32_t, kSymbols>& counts, uint32_t scale_bits);

// A table in a stream: 32 bytes whose bit s % 8 of byte s / 8 says that symbol s has a frequency, then those, u16 each.
inline constexpr uint32_t kTableMaskBytes = kSymbols / 8;
inline constexpr uint32_t kMaxTableBytes = kTableMaskBytes + 2 * kSymbols;
size_t table_bytes(const std::array<uint16_t, kSymbols>& frequencies);
void write_table(const std::array<uint16_t, kSymbols>& frequencies, uint8_t* to);

enum class TableRead : uint8_t { good, cut_off, bad };
// Reads the table at the start of `src`; good if it is all there and sums to `sum`, with no frequency of 0.
TableRead read_table(std::span<const uint8_t> src, uint32_t sum, std::array<uint16_t, kSymbols>& frequencies);

}  // namespace ptxkit::kernels
