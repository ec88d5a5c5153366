// Constants of the Zstandard format (RFC 8878) that the references and the kernels share, and the limits of our
// encoder.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/transform_abi.hpp"

namespace ptxkit::kernels {

// Our encoder's blocks have at most this many bytes, refer to none before their start and repeat no table, so that all
// blocks of a frame can be encoded and decoded at once.
inline constexpr uint32_t kZstdBlockBytes = kMaxChunkBytes;
inline constexpr uint32_t kZstdMinMatch = 3;       // subtracted from a match length before it is coded
inline constexpr uint32_t kZstdRepeatOffsets = 3;  // an offset is coded as itself and this; lower values are repeats
inline constexpr uint32_t kZstdMaxSequences = kZstdBlockBytes / 4;

// A match costs about this many bits beside its offset. One that costs more than its bytes would as literals is left
// out.
inline constexpr uint32_t kZstdMatchCostBits = 4;

inline constexpr std::string_view kZstdLiterals = "zstd_literals";
inline constexpr std::string_view kZstdSequences = "zstd_sequences";

// The most literals that a section of ours has.
inline constexpr uint32_t kZstdMaxLiterals = 1u << 17;

// A sequence as the kernels store it, in two words: the literal count in the low half of the first, the match length in
// the high half, and the offset, or the value that codes it (RFC 8878, 3.1.1.3.2.1.1), in the second.
inline constexpr uint32_t kZstdSequenceBytes = 8;
inline constexpr uint32_t kZstdMaxOffsetValue = (1u << 17) - 1;

// Frames (3.1.1.1). A frame of more than kZstdWindowBytes names that window, so that a decoder holds no more.
inline constexpr uint32_t kZstdMagic = 0xFD2FB528;
inline constexpr uint32_t kZstdWindowBytes = 1u << 17;
inline constexpr uint8_t kZstdWindowDescriptor = (17 - 10) << 3;

// Block types and literals section types (RFC 8878, 3.1.1.2.2 and 3.1.1.3.1.1), in the order of their numbers.
enum class ZstdBlockType : uint8_t { raw = 0, rle = 1, compressed = 2 };
enum class ZstdLiteralsType : uint8_t { raw = 0, rle = 1, compressed = 2 };
// How the codes of a section's lengths or offsets are distributed (3.1.1.3.2.1.1).
enum class ZstdTableMode : uint8_t { predefined = 0, rle = 1, own = 2 };

inline constexpr uint32_t kZstdBlockHeaderBytes = 3;

// Literals: Huffman codes (4.2).
inline constexpr uint32_t kZstdMaxCodeBits = 11;
inline constexpr uint32_t kZstdMaxWeightBits = 6;         // accuracy of the table of weights
inline constexpr uint32_t kZstdMaxDirectWeights = 128;    // more must be coded by FSE
inline constexpr uint32_t kZstdSingleStreamBytes = 1024;  // fewer literals make a single stream, others four
inline constexpr uint32_t kZstdStreams = 4;

// Sequences (3.1.1.3.2): literal lengths, offsets and match lengths, in the order in which their tables stand.
enum class ZstdKind : uint8_t { literal_length, offset, match_length };
inline constexpr uint32_t kZstdKinds = 3;
inline constexpr uint32_t kZstdMinTableBits = 5;
inline constexpr uint32_t kZstdMaxSymbols = 53;  // of a kind
inline constexpr uint32_t kZstdMaxTableBits = 9;

struct ZstdKindLimits {
  uint32_t symbols;          // codes are below this
  uint32_t max_table_bits;   // of an own table
  uint32_t predefined_bits;  // of the predefined table
};
inline constexpr std::array<ZstdKindLimits, kZstdKinds> kZstdKindLimits{{{36, 9, 6}, {29, 8, 5}, {53, 9, 6}}};

// The predefined distributions (3.1.1.3.2.2): -1 is a symbol of less than one in the table, which takes a state at its
// end.
inline constexpr std::array<std::array<int8_t, kZstdMaxSymbols>, kZstdKinds> kZstdPredefined{{
    {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1},
    {1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1},
    {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
     1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1},
}};

}  // namespace ptxkit::kernels
