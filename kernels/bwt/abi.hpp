// The ABI of the kernels of the Burrows-Wheeler transform, and the BWT block format.
//
// Three kernels sort the suffixes of a block with different algorithms and write the same BWT block. `bwt_inverse`
// decodes it. A CTA works on one item.
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

// The largest raw block in bytes.
inline constexpr uint32_t kMaxBwtBytes = 1u << 20;

// The largest raw block of `bwt_bitonic`, which works in shared memory only.
inline constexpr uint32_t kMaxBitonicBytes = 4096;

// Threads of a CTA; a CTA for each item.
inline constexpr uint32_t kBwtRankThreads = 1024;
inline constexpr uint32_t kBwtSortThreads = 512;  // of bwt_radix and bwt_bitonic
inline constexpr uint32_t kBwtInverseThreads = 128;
inline constexpr uint32_t kColumnThreads = 512;  // of move-to-front and zero runs

// A BWT block. Its rows are the suffixes of the n raw bytes in ascending order, including the empty one (row 0): n + 1
// rows. A row's byte is the one before its suffix; the row of the whole block has none.
//   u32                     n
//   u32 x ceil(n / 4096)    the row of the suffix that begins at byte 0, 4096, 8192, ...: the first is the row without
//                           a byte; the inverse can start at each of the others
//   u8 x n                  the bytes of the rows, in order, without that row
// Integers are little-endian.
inline constexpr uint32_t kBwtSegmentBytes = 4096;
constexpr uint32_t bwt_segments(uint32_t raw_bytes) { return (raw_bytes + kBwtSegmentBytes - 1) / kBwtSegmentBytes; }
constexpr uint32_t bwt_column_at(uint32_t raw_bytes) { return 4 + 4 * bwt_segments(raw_bytes); }
constexpr uint32_t bwt_block_bytes(uint32_t raw_bytes) { return bwt_column_at(raw_bytes) + raw_bytes; }

// mtf_* and zero_runs_* are transforms and take TransformParameters. The others take these parameters in order;
// bwt_bitonic has neither scratch nor item_bytes:
//   src            const u8*, 16-byte aligned; item i begins at i * src_stride_16 * 16
//   src_sizes      const u32*, one for each item
//   dst            u8*, 16-byte aligned; the result of item i begins at i * dst_stride_16 * 16 and is at most one
//   stride
//                  long
//   dst_sizes      u32*; 0 unless the status is ok
//   statuses       u32*, StreamStatus
//   scratch        u32*, 8-byte aligned; the words of item i, as many as the kernel's function below says, follow those
//                  of item i - 1
//   src_stride_16, dst_stride_16, item_bytes   u32; item_bytes is the largest raw item, at most kMaxBwtBytes
// A raw item of a sort above item_bytes is item_too_large. A result above its stride, or above item_bytes for the
// inverse, is output_overrun.

// After a sort, the first item_bytes words of the scratch are the suffixes in order, without the empty one. bwt_rank
// needs six words for each byte: this order, two lists of suffixes with their sort keys (two words each), and ranks.
// bwt_radix needs four: two lists of suffixes and two of ranks.
constexpr uint64_t bwt_rank_scratch_words(uint64_t item_bytes) {
  return (item_bytes + 1) / 2 * 2 + (5 * item_bytes + 1) / 2 * 2;
}
constexpr uint64_t bwt_radix_scratch_words(uint64_t item_bytes) { return 4 * item_bytes; }
// A word for each row, and one for walks of corrupt blocks.
constexpr uint64_t bwt_inverse_scratch_words(uint64_t item_bytes) { return (item_bytes + 3) / 2 * 2; }

}  // namespace ptxkit::kernels
