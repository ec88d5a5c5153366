// The kernels of the Burrows-Wheeler transform: what a launch means, and the block that a transform becomes.
//
// Three kernels sort the suffixes of a block, each in its own way, and write the same BWT block; `bwt_inverse` reads
// it. A CTA works on an item.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/transform_abi.hpp"

namespace ptxkit::kernels {

inline constexpr std::string_view kBwtRank = "bwt_rank";
inline constexpr std::string_view kBwtRadix = "bwt_radix";
inline constexpr std::string_view kBwtBitonic = "bwt_bitonic";
inline constexpr std::string_view kBwtInverse = "bwt_inverse";
inline constexpr std::string_view kMtfEncode = "mtf_encode";
inline constexpr std::string_view kMtfDecode = "mtf_decode";
inline constexpr std::string_view kZeroRunsEncode = "zero_runs_encode";
inline constexpr std::string_view kZeroRunsDecode = "zero_runs_decode";

// Largest raw block.
inline constexpr uint32_t kMaxBwtBytes = 1u << 20;

// Largest raw block of `bwt_bitonic`, which has nothing but shared memory.
inline constexpr uint32_t kMaxBitonicBytes = 4096;

// Threads of a CTA; one CTA an item.
inline constexpr uint32_t kBwtRankThreads = 1024;
inline constexpr uint32_t kBwtSortThreads = 512;  // of the other two
inline constexpr uint32_t kBwtInverseThreads = 128;
inline constexpr uint32_t kColumnThreads = 512;  // of move to front and zero runs

// A BWT block. Rows are the suffixes of the n raw bytes in ascending order, the empty one (row 0) included: n + 1 of
// them. A row's byte is the one before its suffix; the row of the whole block has none.
//   u32                     n
//   u32 x ceil(n / 4096)    the row of the suffix that begins at byte 0, 4096, 8192, ...: the first is the row without
//                           a byte, and an inverse may begin at each of the others
//   u8 x n                  the bytes of the rows, in order, without that row
inline constexpr uint32_t kBwtSegmentBytes = 4096;
constexpr uint32_t bwt_segments(uint32_t raw_bytes) { return (raw_bytes + kBwtSegmentBytes - 1) / kBwtSegmentBytes; }
constexpr uint32_t bwt_column_at(uint32_t raw_bytes) { return 4 + 4 * bwt_segments(raw_bytes); }
constexpr uint32_t bwt_block_bytes(uint32_t raw_bytes) { return bwt_column_at(raw_bytes) + raw_bytes; }

// mtf_* and zero_runs_* are transforms: TransformParameters. The others have these parameters in order, bwt_bitonic
// neither scratch nor item_bytes:
//   src            const u8*, 16-byte aligned; item i begins at i * src_stride_16 * 16
//   src_sizes      const u32*, one an item
//   dst            u8*, 16-byte aligned; the result of item i begins at i * dst_stride_16 * 16 and is not longer than
//                  that
//   dst_sizes      u32*; 0 unless the status is ok
//   statuses       u32*, StreamStatus
//   scratch        u32*, 8-byte aligned; item i has the words of its kernel's function below, one item's after
//                  another's
//   src_stride_16, dst_stride_16, item_bytes   u32; item_bytes is the largest raw item, at most kMaxBwtBytes
// An item above item_bytes (raw, of a sort) is item_too_large; a result above its stride (or, of the inverse, above
// item_bytes) is output_overrun.

// Of both sorts, the first item_bytes words are afterwards the suffixes in order (the empty one apart). Six words a
// byte: these, two lists of suffixes with what they are sorted by, and ranks; and four: two lists of suffixes, two of
// ranks.
constexpr uint64_t bwt_rank_scratch_words(uint64_t item_bytes) {
  return (item_bytes + 1) / 2 * 2 + (5 * item_bytes + 1) / 2 * 2;
}
constexpr uint64_t bwt_radix_scratch_words(uint64_t item_bytes) { return 4 * item_bytes; }
// A word a row, and one for walks that went wrong.
constexpr uint64_t bwt_inverse_scratch_words(uint64_t item_bytes) { return (item_bytes + 3) / 2 * 2; }

}  // namespace ptxkit::kernels
