// Constants of Deflate (RFC 1951) and of what stands around a stream: zlib (RFC 1950), gzip (RFC 1952) and BGZF.
// Decoder and encoder, references and kernels share them.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace ptxkit::kernels {

// What stands around a stream of Deflate. Values are parameters of kernels, so they are never changed or reused.
enum class DeflateFraming : uint32_t {
  raw = 0,
  zlib = 1,  // two bytes, the stream, Adler-32
  gzip = 2,  // members of a header, a stream, CRC-32 and size; those of BGZF among them
  bgzf = 3,  // for encoders: members of gzip of at most kBgzfMaxRawBytes whose header says their size
};

// --- the stream (RFC 1951) ---

// Bits are taken from the lowest of each byte on. Codes stand with their first bit lowest, all other numbers with their
// lowest bit lowest. A block begins with one bit, whether it is the last, and two of its type.
enum class DeflateBlockType : uint8_t { stored = 0, fixed = 1, dynamic = 2, reserved = 3 };
inline constexpr uint32_t kDeflateBlockHeaderBits = 3;

// A stored block: the bits up to the next byte, its length and the length's complement, its bytes.
inline constexpr uint32_t kDeflateStoredHeaderBytes = 4;
inline constexpr uint32_t kDeflateMaxStoredBytes = 65535;

inline constexpr uint32_t kDeflateWindowBytes = 32768;  // the largest distance
inline constexpr uint32_t kDeflateMinMatch = 3, kDeflateMaxMatch = 258;

// Literals and lengths: bytes, the end of the block, then lengths by kDeflateLengthCodes codes. Two more literals and
// two more distances have lengths in the fixed codes, but may not occur.
inline constexpr uint32_t kDeflateEndOfBlock = 256;
inline constexpr uint32_t kDeflateFirstLength = 257;
inline constexpr uint32_t kDeflateLengthCodes = 29, kDeflateDistanceCodes = 30;
inline constexpr uint32_t kDeflateLiteralCodes = kDeflateFirstLength + kDeflateLengthCodes;  // 286
inline constexpr uint32_t kDeflateFixedLiteralCodes = 288, kDeflateFixedDistanceCodes = 32;
inline constexpr uint32_t kDeflateMaxCodeBits = 15;

// A length or distance is the base of its code and the value of so many bits behind it.
struct DeflateCode {
  uint32_t base, bits;
};
constexpr DeflateCode deflate_length_code(uint32_t code) {  // symbol - kDeflateFirstLength
  if (code < 8) return {code + kDeflateMinMatch, 0};
  if (code == kDeflateLengthCodes - 1) return {kDeflateMaxMatch, 0};
  const uint32_t bits = code / 4 - 1;
  return {((4 + code % 4) << bits) + kDeflateMinMatch, bits};
}
constexpr DeflateCode deflate_distance_code(uint32_t code) {
  if (code < 4) return {code + 1, 0};
  const uint32_t bits = code / 2 - 1;
  return {((2 + code % 2) << bits) + 1, bits};
}
// And back. A length of kDeflateMaxMatch has a code of its own.
constexpr uint32_t deflate_code_of_length(uint32_t length) {
  const uint32_t value = length - kDeflateMinMatch;
  if (value < 8) return value;
  if (length == kDeflateMaxMatch) return kDeflateLengthCodes - 1;
  const auto bits = static_cast<uint32_t>(std::bit_width(value)) - 3;
  return 4 * bits + (value >> bits);
}
constexpr uint32_t deflate_code_of_distance(uint32_t distance) {
  const uint32_t value = distance - 1;
  if (value < 4) return value;
  const auto bits = static_cast<uint32_t>(std::bit_width(value)) - 2;
  return 2 * bits + (value >> bits);
}

// The fixed codes: these lengths, and five bits for each distance.
constexpr uint32_t deflate_fixed_literal_bits(uint32_t symbol) {
  return symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8;
}
inline constexpr uint32_t kDeflateFixedDistanceBits = 5;

// A dynamic block's header: the numbers of literal codes, of distance codes and of lengths of code-length codes, each
// less the least that it may be; then those lengths, three bits each, in this order. By these codes stand the lengths
// of the literals' and the distances' codes, as one sequence: 0 to 15 is a length; others repeat.
inline constexpr uint32_t kDeflateLiteralCountBits = 5, kDeflateDistanceCountBits = 5, kDeflateLengthCountBits = 4;
inline constexpr uint32_t kDeflateMinLiteralCount = 257, kDeflateMinDistanceCount = 1, kDeflateMinLengthCount = 4;
inline constexpr uint32_t kDeflateDynamicHeaderBits =
    kDeflateLiteralCountBits + kDeflateDistanceCountBits + kDeflateLengthCountBits;
inline constexpr uint32_t kDeflateLengthSymbols = 19;
inline constexpr uint32_t kDeflateLengthSymbolBits = 3, kDeflateMaxLengthSymbolBits = 7;
inline constexpr std::array<uint8_t, kDeflateLengthSymbols> kDeflateLengthOrder{16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                                                11, 4,  12, 3, 13, 2, 14, 1, 15};
inline constexpr uint32_t kDeflateRepeatLength = 16;          // the length before, 3 times and by two bits more
inline constexpr uint32_t kDeflateShortZeros = 17;            // 0, 3 times and by three bits more
inline constexpr uint32_t kDeflateLongZeros = 18;             // 0, 11 times and by seven bits more
constexpr DeflateCode deflate_repeat_code(uint32_t symbol) {  // one of those three
  if (symbol == kDeflateRepeatLength) return {3, 2};
  if (symbol == kDeflateShortZeros) return {3, 3};
  return {11, 7};
}

// --- zlib (RFC 1950) ---

// The first byte: method, and from bit 4 on log2 of the window less 8. Both bytes, as a big-endian number, are a
// multiple of 31. Behind the stream, Adler-32 of the content, big-endian.
inline constexpr uint32_t kZlibHeaderBytes = 2, kZlibTrailerBytes = 4;
inline constexpr uint32_t kDeflateMethod = 8;  // of zlib and gzip
inline constexpr uint32_t kZlibMaxWindow = 7;
inline constexpr uint32_t kZlibDictionaryFlag = 1 << 5;  // of the second byte
inline constexpr uint32_t kZlibHeaderFactor = 31;
inline constexpr uint32_t kAdlerModulus = 65521;

// --- gzip (RFC 1952) ---

// Two bytes of magic, method, flags, time in four bytes, extra flags, system. Then, by the flags, the extra field (its
// length in two bytes, little-endian, and its bytes), name and comment (each up to a zero byte), and the low half of
// the CRC-32 of all of that. Behind the stream, CRC-32 and size of the content, four bytes each, little-endian.
inline constexpr uint32_t kGzipHeaderBytes = 10, kGzipTrailerBytes = 8;
inline constexpr uint8_t kGzipMagic0 = 0x1F, kGzipMagic1 = 0x8B;
inline constexpr uint32_t kGzipMagic = kGzipMagic0 | kGzipMagic1 << 8;  // as a little-endian number
inline constexpr uint32_t kGzipTextFlag = 1, kGzipHeaderCrcFlag = 2, kGzipExtraFlag = 4, kGzipNameFlag = 8,
                          kGzipCommentFlag = 16, kGzipReservedFlags = 0xE0;
inline constexpr uint8_t kGzipUnknownSystem = 255;
inline constexpr uint32_t kCrc32Polynomial = 0xEDB88320;  // reflected; the CRC begins as ~0 and ends complemented

// BGZF: a member's extra field is the six bytes 'B', 'C', 2, 0, and the member's size less one in two bytes. The last
// member is the empty one.
inline constexpr uint32_t kBgzfExtraBytes = 6;
inline constexpr uint32_t kBgzfHeaderBytes = kGzipHeaderBytes + 2 + kBgzfExtraBytes;  // 18
inline constexpr uint32_t kBgzfSizeAt = 16;
inline constexpr uint32_t kBgzfMaxMemberBytes = 65536;
inline constexpr uint32_t kBgzfMaxRawBytes = 65280;  // of a member by htslib, so that stored blocks fit as well
inline constexpr std::array<uint8_t, kBgzfHeaderBytes> kBgzfHeader{
    kGzipMagic0, kGzipMagic1, 8, kGzipExtraFlag, 0, 0, 0, 0, 0, 255, 6, 0, 'B', 'C', 2, 0, 0, 0};
inline constexpr std::array<uint8_t, 28> kBgzfEnd{0x1F, 0x8B, 8,  4, 0, 0, 0, 0, 0, 255, 6, 0, 'B', 'C',
                                                  2,    0,    27, 0, 3, 0, 0, 0, 0, 0,   0, 0, 0,   0};

}  // namespace ptxkit::kernels
