// What the kernels `huffman_encode` and `huffman_decode` compute, stated for one item.
#pragma once

#include <array>
#include <span>

#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/lane_bits_reference.hpp"

namespace ptxkit::kernels {

// Length of each symbol's code, 0 for symbols that do not occur; none above kMaxCodeBits. A single symbol has length 1.
// The counts sum to at most kMaxLanedBytes.
//
// Huffman's algorithm: of equal weights a symbol goes before a pair, and a lower symbol before a higher. Lengths above
// the limit become the limit; while the code then is too large, a code of the longest length below the limit grows by
// one bit; while it is too small, a code of the limit loses one. The lengths are given out in order of the counts.
std::array<uint8_t, kSymbols> code_lengths(const std::array<uint32_t, kSymbols>& counts);

// The canonical code of each symbol, in the lowest bits; 0 for symbols without one.
std::array<uint16_t, kSymbols> canonical_codes(const std::array<uint8_t, kSymbols>& lengths);

TransformOutcome huffman_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);
TransformOutcome huffman_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

// The two halves of these functions, for other code that makes the same bytes. Of the encoder: writes what stands
// before the lanes' sizes. ok with where those begin, or with the whole stream where `src` is empty.
TransformOutcome begin_huffman(std::span<const uint8_t> src, std::span<uint8_t> dst,
                               std::array<uint8_t, kSymbols>& lengths);

// Of the decoder: a stream whose structure is in order, and whose content fits `room_bytes`. Every string of bits
// begins with one of its codes, or it has only the code 0 of one bit.
struct HuffmanStream {
  uint32_t raw_bytes = 0;
  std::array<uint8_t, kSymbols> lengths{};
  Lanes lanes;
};
StreamStatus open_huffman(std::span<const uint8_t> src, size_t room_bytes, HuffmanStream& stream);

// Bytes that a stream of `raw_bytes` takes at most: each lane may fill up to a byte.
constexpr uint64_t huffman_bound(uint64_t raw_bytes) {
  return kLanedHeaderBytes + kCodeLengthsBytes + kLaneSizesBytes + kBitLanes + (raw_bytes * kMaxCodeBits + 7) / 8;
}

}  // namespace ptxkit::kernels
