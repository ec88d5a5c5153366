// Bit streams of 32 lanes, in which symbol i belongs to lane i mod 32. Huffman and FSE codes use them.
//
// The stream: raw size u32 (a stream with raw size 0 ends here); the coder's table; the size in bytes of each lane,
// u16; the lanes. A lane's bits are read from the highest bit of each byte on, and its last byte is padded with zeros.
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
inline constexpr uint32_t kMaxLanedBytes = 1u << 20;  // of an item, so that no lane has more than 65535 bytes
inline constexpr uint32_t kLanedHeaderBytes = 4;
inline constexpr uint32_t kLaneSizesBytes = 2 * kBitLanes;

// Huffman: the table has the code lengths, two symbols in each byte, the even one in the low half; 0: the symbol does
// not occur.
inline constexpr uint32_t kMaxCodeBits = 15;
inline constexpr uint32_t kCodeLengthsBytes = 128;

// FSE: the table has the accuracy u8, then the table of frequencies_reference.hpp.
inline constexpr uint32_t kMinAccuracyBits = 5;
inline constexpr uint32_t kMaxAccuracyBits = 12;

// The option of `fse_encode`. A value out of range is bad_option. If more symbols occur than there are states, the
// smallest accuracy with a state for each symbol is used.
struct FseOptions {
  uint32_t accuracy_bits = 11;  // kMinAccuracyBits..kMaxAccuracyBits
};

// The step in which states are visited when symbols are spread over them. It is coprime to every number of states.
constexpr uint32_t spread_step(uint32_t state_count) { return (state_count >> 1) + (state_count >> 3) + 3; }

}  // namespace ptxkit::kernels
