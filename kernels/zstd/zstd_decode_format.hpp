// Constants of the Zstandard format (RFC 8878) that a decoder needs beside those of zstd_format.hpp: what other
// encoders write and ours does not.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/abi.hpp"
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

// --- kernels ---

inline constexpr std::string_view kZstdBatchIndex = "zstd_batch_index";
inline constexpr std::string_view kZstdBatchReadLiterals = "zstd_batch_read_literals";
inline constexpr std::string_view kZstdBatchReadSequences = "zstd_batch_read_sequences";
inline constexpr std::string_view kZstdBatchExecute = "zstd_batch_execute";
inline constexpr std::string_view kZstdBatchDecompress = "zstd_batch_decompress";
inline constexpr LaunchShape kZstdBatchIndexShape{.block_threads = 128, .items_per_block = 4};
inline constexpr LaunchShape kZstdDecodeShape{.block_threads = 32, .items_per_block = 1};
inline constexpr LaunchShape kZstdReadSequencesShape{.block_threads = 32, .items_per_block = 4};

// The most that max_output_bytes may be, so that an offset has 29 bits.
inline constexpr uint32_t kZstdMaxItemBytes = 1u << 28;

// A sequence as the kernels store it, in two words. First word: the literal length in 17 bits, and the low 15 bits of
// the match length less kZstdMinMatch. Second word: the offset in 30 bits, and the other bits of the match length. An
// offset that follows from one of the three that the block begins with is kZstdFromFirst, from bit 20 on the number of
// that one, and what is subtracted from it; offsets above kZstdMaxStoredOffset, which no item has, become that.
inline constexpr uint32_t kZstdLiteralLengthBits = 17, kZstdMatchLowBits = 15, kZstdOffsetBits = 30;
inline constexpr uint32_t kZstdFromFirst = 1u << 29, kZstdMaxStoredOffset = kZstdFromFirst - 1;
inline constexpr uint32_t kZstdFirstNumberShift = 20;

// What an item's temporary memory has room for: its literals, and its sequences, of which each gives three bytes.
template <class Bytes>
constexpr auto zstd_literal_room(const Bytes& max_output_bytes) {
  return (max_output_bytes + (kStrideUnitBytes - 1)) / kStrideUnitBytes * kStrideUnitBytes;
}
template <class Bytes>
constexpr auto zstd_sequence_room(const Bytes& max_output_bytes) {
  return max_output_bytes / kZstdMinMatch + 1;
}

// How many compressed blocks an item has at most that most encoders write: libzstd cuts those of 128 KiB in several.
template <class Bytes>
constexpr auto zstd_blocks_per_item(const Bytes& max_output_bytes) {
  return max_output_bytes / 16384 + 1;
}

// A compressed block as zstd_batch_index lists it. Positions are those in the item; a table that the block needs is
// that of the block whose content begins there, 0 for none.
struct ZstdBlockRecord {
  uint32_t begin;            // of its content, behind the header
  uint32_t max_block_bytes;  // of the frame
  uint32_t literal_place;    // the literals and the sequences of the listed blocks before it
  uint32_t sequence_place;
  uint32_t tree_at;
  uint32_t table_at[kZstdKinds];
};
// What zstd_batch_read_sequences knows of one.
struct ZstdBlockState {
  uint32_t content_bytes;                     // of the block, or kZstdBadBlock
  uint32_t last_offsets[kZstdRepeatOffsets];  // behind the block, as they are stored
};
inline constexpr uint32_t kZstdBadBlock = ~0u;
inline constexpr uint32_t kZstdNotListed = ~0u;  // in place of an item's number of blocks: they are too many

// Parameters of the kernels that decode batches: `zstd_batch_index` in kZstdBatchIndexShape for item_count items,
// `zstd_batch_read_literals` in kZstdDecodeShape and `zstd_batch_read_sequences` in kZstdReadSequencesShape, in either
// order, for item_count * blocks_per_item, then `zstd_batch_execute` and `zstd_batch_decompress`, in either order, in
// kZstdDecodeShape for item_count.
// `zstd_batch_decompress` decodes the items that have more than blocks_per_item compressed blocks; if blocks_per_item
// is 0, all of them, and it is the only launch: the last four arrays are null.
//
// The blocks with one number of all items stand together: block b of item i is element b * item_count + i.
//
// Item i, input_bytes[i] bytes at inputs[i], is decoded as by zstd_decode_reference into at most output_capacities[i]
// bytes at outputs[i]; of a larger capacity, max_output_bytes, beyond which it is too large. Neither needs an
// alignment. No byte outside these two ranges is written, and none outside the first is read. output_bytes and statuses
// may be null. If the status is not ok, output_bytes[i] is 0 and the output holds unspecified bytes.
struct ZstdDecodeParameters {
  uint64_t inputs;             // const u64*, addresses
  uint64_t input_bytes;        // const u64*
  uint64_t outputs;            // const u64*, addresses
  uint64_t output_capacities;  // const u64*
  uint64_t output_bytes;       // u64*, or null
  uint64_t statuses;           // u32*, BatchStatus, or null
  uint64_t literals;           // u8*, zstd_literal_room(max_output_bytes) for each item
  uint64_t sequences;          // u32*, 8-byte aligned, zstd_sequence_room(max_output_bytes) pairs for each item
  uint64_t block_counts;       // u32*, one for each item
  uint64_t blocks;             // ZstdBlockRecord*, 16-byte aligned, blocks_per_item for each item
  uint64_t literal_states;     // u32*, the same number; 0 if the literals are good
  uint64_t block_states;       // ZstdBlockState*, 16-byte aligned, the same number
  uint32_t max_output_bytes;   // at most kZstdMaxItemBytes
  uint32_t blocks_per_item;
  uint32_t item_count;
};

}  // namespace ptxkit::kernels
