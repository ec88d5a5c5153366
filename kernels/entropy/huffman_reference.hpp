// Scalar references of the kernels `huffman_encode` and `huffman_decode`, for one item.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/lane_bits_reference.hpp"

namespace ptxkit::kernels {

// The length of each symbol's code, 0 for symbols that do not occur, at most `max_bits`, which is at most kMaxCodeBits
// and enough for the symbols. A single symbol has length 1. The counts must sum to at most kMaxLanedBytes.
//
// Huffman's algorithm: of equal weights a symbol precedes a pair, and a lower symbol a higher one. Lengths above the
// limit are reduced to the limit. While the code is then too large, a code of the longest length below the limit gets
// one bit longer; while it is too small, a code at the limit gets one bit shorter. The lengths are assigned in the
// order of the counts.
std::array<uint8_t, kSymbols> code_lengths(const std::array<uint32_t, kSymbols>& counts,
                                           uint32_t max_bits = kMaxCodeBits);
// The same for any number of symbols.
std::vector<uint8_t> code_lengths_of(std::span<const uint32_t> counts, uint32_t max_bits);

// The canonical code of each symbol, in the lowest bits; 0 for symbols without a code.
std::array<uint16_t, kSymbols> canonical_codes(const std::array<uint8_t, kSymbols>& lengths);

TransformOutcome huffman_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);
TransformOutcome huffman_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

// The two halves of these functions, for other code that produces the same bytes. The encoder's first half writes
// everything before the lanes' sizes. Its outcome is ok with the offset of the sizes, or with the size of the whole
// stream if `src` is empty.
TransformOutcome begin_huffman(std::span<const uint8_t> src, std::span<uint8_t> dst,
                               std::array<uint8_t, kSymbols>& lengths);

// The decoder's first half: a stream whose structure is valid and whose content fits `room_bytes`. Every string of bits
// begins with one of its codes, or its only code is the bit 0.
struct HuffmanStream {
  uint32_t raw_bytes = 0;
  std::array<uint8_t, kSymbols> lengths{};
  Lanes lanes;
};
StreamStatus open_huffman(std::span<const uint8_t> src, size_t room_bytes, HuffmanStream& stream);

// The largest size in bytes of a stream of `raw_bytes`. Each lane may pad its last byte.
constexpr uint64_t huffman_bound(uint64_t raw_bytes) {
  return kLanedHeaderBytes + kCodeLengthsBytes + kLaneSizesBytes + kBitLanes + (raw_bytes * kMaxCodeBits + 7) / 8;
}

}  // namespace ptxkit::kernels
