// Constants of the Zstandard format (RFC 8878) that a decoder needs beside those of zstd_format.hpp: what other
// encoders write and ours does not.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/zstd/zstd_format.hpp"

namespace ptxkit::kernels {

// A block decodes to at most this, or to the window of its frame if that is less (3.1.1.2.4).
inline constexpr uint32_t kZstdMaxBlockBytes = 1u << 17;

// Frames (3.1.1.1, 3.1.2).
inline constexpr uint32_t kZstdSkippableMagic = 0x184D2A50, kZstdSkippableMagicMask = 15;
inline constexpr uint32_t kZstdSingleSegmentFlag = 1 << 5, kZstdReservedFlag = 1 << 3, kZstdChecksumFlag = 1 << 2;
inline constexpr uint32_t kZstdMinWindowLog = 10;
inline constexpr uint32_t kZstdMaxWindowLog = 31;  // of libzstd; the format has up to 41
inline constexpr uint32_t kZstdChecksumBytes = 4;

// Literals (3.1.1.3.1, 4.2).
inline constexpr uint32_t kZstdMaxWeights = 255;         // the last symbol's weight follows from the others
inline constexpr uint32_t kZstdJumpBytes = 6;            // the lengths of three streams
inline constexpr uint32_t kZstdMinFourStreamBytes = 6;   // of literals; fewer leave the fourth stream less than nothing
inline constexpr uint32_t kZstdDirectWeightsBase = 127;  // from 128 on, a tree's first byte is this and their number

// Sequences (3.1.1.3.2).
inline constexpr uint32_t kZstdLongSequenceCount = 0x7F00;  // added where a count has three bytes
inline constexpr std::array<uint32_t, kZstdKinds> kZstdCodes{36, 32, 53};
inline constexpr uint32_t kZstdMaxCodes = 53;

// A length is the base of its code and the value of so many bits.
struct ZstdLengthCode {
  uint32_t base, bits;
};
constexpr ZstdLengthCode zstd_literal_length_code(uint32_t code) {
  constexpr std::array<uint8_t, 9> kBits{1, 1, 1, 1, 2, 2, 3, 3, 4};
  constexpr std::array<uint8_t, 9> kBases{16, 18, 20, 22, 24, 28, 32, 40, 48};
  if (code < 16) return {code, 0};
  if (code < 25) return {kBases[code - 16], kBits[code - 16]};
  return {1u << (code - 19), code - 19};
}
constexpr ZstdLengthCode zstd_match_length_code(uint32_t code) {
  constexpr std::array<uint8_t, 11> kBits{1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5};
  constexpr std::array<uint8_t, 11> kBases{35, 37, 39, 41, 43, 47, 51, 59, 67, 83, 99};
  if (code < 32) return {code + kZstdMinMatch, 0};
  if (code < 43) return {kBases[code - 32], kBits[code - 32]};
  return {(1u << (code - 36)) + kZstdMinMatch, code - 36};
}

inline constexpr std::array<uint32_t, kZstdRepeatOffsets> kZstdFirstOffsets{1, 4, 8};  // those that a frame begins with

}  // namespace ptxkit::kernels
