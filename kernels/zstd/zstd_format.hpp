// Constants of the Zstandard format (RFC 8878) that the references and the kernels share, and the limits of our
// encoder.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "kernels/abi.hpp"
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
// The least that a literal costs, in 1/256 bit, unless all are equal: no Huffman code is shorter than a bit.
inline constexpr uint32_t kZstdLeastLiteralCost = 256;

inline constexpr std::string_view kZstdMatch = "zstd_match";
inline constexpr std::string_view kZstdMatchHigh = "zstd_match_high";
inline constexpr std::string_view kZstdChoose = "zstd_choose";
inline constexpr std::string_view kZstdLiterals = "zstd_literals";
inline constexpr std::string_view kZstdSequences = "zstd_sequences";
inline constexpr std::string_view kZstdBatchSplit = "zstd_batch_split";
inline constexpr std::string_view kZstdBatchPlan = "zstd_batch_plan";
inline constexpr std::string_view kZstdBatchJoin = "zstd_batch_join";

// The most literals that a section of ours has.
inline constexpr uint32_t kZstdMaxLiterals = 1u << 17;

// A sequence as the kernels store it, in two words: the literal count in the low half of the first, the match length in
// the high half, and the offset, or the value that codes it (RFC 8878, 3.1.1.3.2.1.1), in the second.
inline constexpr uint32_t kZstdSequenceBytes = 8;
inline constexpr uint32_t kZstdMaxOffsetValue = (1u << 17) - 1;

// What the kernels between items and frames take for each block: room for its sequences, and for a section. A section
// that does not fit makes the block a raw one.
inline constexpr uint32_t kZstdListBytes = kZstdMaxSequences * kZstdSequenceBytes;
inline constexpr uint32_t kZstdSectionBytes = kZstdBlockBytes + 16;

// Launches. A block is the block_bytes[i], at most kZstdBlockBytes, bytes at blocks[i], an address that is a multiple
// of 16; up to fifteen bytes behind it are read and ignored. 0 bytes: there is no such block.
inline constexpr LaunchShape kZstdMatchShape{.block_threads = 256, .items_per_block = 1};
inline constexpr LaunchShape kZstdChooseShape{.block_threads = 32, .items_per_block = 1};
inline constexpr LaunchShape kZstdBatchSplitShape{.block_threads = 128, .items_per_block = 128};  // items are blocks
inline constexpr LaunchShape kZstdBatchPlanShape{.block_threads = 128, .items_per_block = 4};
inline constexpr LaunchShape kZstdBatchJoinShape{.block_threads = 128, .items_per_block = 1};

// Parameters in order; pointers but for block_count, item_count, max_input_bytes and blocks_per_item, u32; * is
// written.
//   zstd_match, zstd_match_high  blocks u64, block_bytes u32, matches u32* (8-byte aligned, kZstdListBytes for each
//                                block), match_counts u32*, block_count
//   zstd_choose                  blocks, block_bytes, matches, match_counts, literals u8* (16-byte aligned,
//                                kZstdBlockBytes for each block; zeros fill the word of the last literal),
//                                literal_counts u32*, sequences u32* (as matches), sequence_bytes u32*, block_count
//   zstd_literals, zstd_sequences   transforms (transform_abi.hpp) of these; an item is a block. The whole words in
//                                which an item's ends lie are read, and an item of zstd_sequences begins at a multiple
//                                of 8
//   zstd_batch_*                 those of ZstdBatchParameters
//
// A batch: zstd_batch_split for item_count * blocks_per_item blocks, which writes the arrays that the five kernels
// above take for as many blocks, these kernels, then zstd_batch_plan for item_count and zstd_batch_join for as many
// blocks. Item i is the input_bytes[i] bytes at inputs[i], a multiple of 16, and becomes a frame at outputs[i], where
// zstd_batch_bound(input_bytes[i]) bytes may be written.
struct ZstdBatchParameters {
  uint64_t inputs;                  // const u64*, addresses
  uint64_t input_bytes;             // const u64*
  uint64_t outputs;                 // const u64*, addresses
  uint64_t output_bytes;            // u64*
  uint64_t statuses;                // u32*, BatchStatus, or null
  uint64_t blocks;                  // u64*
  uint64_t block_bytes;             // u32*
  uint64_t literal_offsets;         // u64*, i * kZstdBlockBytes
  uint64_t list_offsets;            // u64*, i * kZstdListBytes
  uint64_t section_offsets;         // u64*, i * kZstdSectionBytes
  uint64_t section_capacities;      // u32*, kZstdSectionBytes
  uint64_t literal_sections;        // const u8*
  uint64_t literal_section_bytes;   // const u32*, 0 if the section does not fit
  uint64_t sequence_sections;       // const u8*
  uint64_t sequence_section_bytes;  // const u32*, the same
  uint64_t places;                  // u32*, where each block goes, from the start of its frame
  uint32_t max_input_bytes;         // at most kMaxBatchRawBytes; a larger item is an error of that item
  uint32_t blocks_per_item;         // of an item of max_input_bytes; at least 1
  uint32_t item_count;
};

// The most that a frame of `raw_bytes` takes: header, and a raw block of each kZstdBlockBytes.
constexpr uint64_t zstd_batch_bound(uint64_t raw_bytes) {
  return raw_bytes + 14 + 3 * (raw_bytes / kZstdBlockBytes + 1);
}

// Frames (3.1.1.1). A frame of more than kZstdWindowBytes names that window, so that a decoder holds no more.
inline constexpr uint32_t kZstdMagic = 0xFD2FB528;
inline constexpr uint32_t kZstdWindowBytes = 1u << 17;
inline constexpr uint8_t kZstdWindowDescriptor = (17 - 10) << 3;

// Block types and literals section types (RFC 8878, 3.1.1.2.2 and 3.1.1.3.1.1), in the order of their numbers. A
// treeless section has the codes of the last compressed one before it.
enum class ZstdBlockType : uint8_t { raw = 0, rle = 1, compressed = 2, reserved = 3 };
enum class ZstdLiteralsType : uint8_t { raw = 0, rle = 1, compressed = 2, treeless = 3 };
// How the codes of a section's lengths or offsets are distributed (3.1.1.3.2.1.1).
enum class ZstdTableMode : uint8_t { predefined = 0, rle = 1, own = 2, repeat = 3 };

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
