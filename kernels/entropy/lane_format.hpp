// Streams of bits for 32 lanes, symbol i belonging to lane i mod 32: what Huffman and FSE codes stand in.
//
// The stream: raw size u32, 0 ending it after four bytes; the coder's table; the bytes of each lane, u16; the lanes.
// A lane's bits are read from the highest of each byte on, and its last byte is filled with zeros.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/transform_abi.hpp"

namespace ptxkit::kernels {

inline constexpr std::string_view kHuffmanEncode = "huffman_encode";
inline constexpr std::string_view kHuffmanDecode = "huffman_decode";
inline constexpr std::string_view kFseEncode = "fse_encode";
inline constexpr std::string_view kFseDecode = "fse_decode";

inline constexpr uint32_t kBitLanes = 32;
inline constexpr uint32_t kMaxFieldBits = 15;
inline constexpr uint32_t kMaxLanedBytes = 1u << 20;  // of an item: no lane then has more than 65535 bytes
inline constexpr uint32_t kLanedHeaderBytes = 4;
inline constexpr uint32_t kLaneSizesBytes = 2 * kBitLanes;

// Huffman: code lengths, two symbols a byte, the even one in the low half; 0: the symbol does not occur.
inline constexpr uint32_t kMaxCodeBits = 15;
inline constexpr uint32_t kCodeLengthsBytes = 128;

// FSE: accuracy u8, then the table of frequencies_reference.hpp.
inline constexpr uint32_t kMinAccuracyBits = 5;
inline constexpr uint32_t kMaxAccuracyBits = 12;

// The option of `fse_encode`. Out of range it is bad_option; where more symbols occur than states are, the smallest
// accuracy that has a state for each is taken.
struct FseOptions {
  uint32_t accuracy_bits = 11;  // kMinAccuracyBits..kMaxAccuracyBits
};

// States are visited in this step when symbols are spread over them; coprime to every number of states.
constexpr uint32_t spread_step(uint32_t state_count) { return (state_count >> 1) + (state_count >> 3) + 3; }

}  // namespace ptxkit::kernels
