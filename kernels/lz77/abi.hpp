// The ABI of the LZ77 kernels, the matches that they find, and the LZ block format.
//
// A match finder determines for every position of a block where the bytes at that position occurred before. `demux`
// parses the block with the result of one match finder and writes the tokens to separate streams. `lz77_decode` decodes
// the block.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/transform_abi.hpp"

namespace ptxkit::kernels {

inline constexpr std::string_view kLz77Link = "lz77_link";
inline constexpr std::string_view kLz77Hash = "lz77_hash";
inline constexpr std::string_view kLz77Lazy = "lz77_lazy";
inline constexpr std::string_view kLz77PerPosition = "lz77_per_position";
inline constexpr std::string_view kLz77Batch = "lz77_batch";
inline constexpr std::string_view kLz77TopK = "lz77_topk";
inline constexpr std::string_view kLz77Table = "lz77_table";
inline constexpr std::string_view kDemuxCount = "demux_count";
inline constexpr std::string_view kDemuxScatter = "demux_scatter";
inline constexpr std::string_view kLz77Decode = "lz77_decode";

inline constexpr uint32_t kLzMinMatch = 4;
inline constexpr uint32_t kLzMaxMatch = kLzMinMatch + 255;
inline constexpr uint32_t kLzMaxOffset = 65535;
// The largest block of lz77_decode in bytes, raw or coded: more than the other transforms accept. Sums of the sizes in
// the header of such a block fit 32 bits.
inline constexpr uint32_t kLzDecodeMaxBytes = 1u << 28;
inline constexpr uint32_t kLzHashBits = 15;
inline constexpr uint32_t kLzMaxLinks = 64;        // candidates of each position
inline constexpr uint32_t kLzBatchPositions = 32;  // positions of each thread of lz77_batch
inline constexpr uint32_t kLzBatchMaxLinks = 16;   // candidates of each position there: at most 512 in each thread
inline constexpr uint32_t kLzBatchMaxOffset = 32768;
inline constexpr uint32_t kLzTopK = 4;
inline constexpr uint32_t kLzMaxWindow = 32768;         // of lz77_per_position
inline constexpr uint32_t kLzMaxWindowWork = 1u << 31;  // candidates in its launch: positions x window

// The entry of a position; three u32 in device memory. offset 0: no match. next: one more than the nearest earlier
// position whose four bytes have the same hash, 0 if there is none.
struct LzMatch {
  uint32_t offset = 0, length = 0, next = 0;

  bool operator==(const LzMatch&) const = default;
};

// CTA size of the kernels that have a thread for each position, or for kLzBatchPositions positions.
inline constexpr uint32_t kLzBlockThreads = 128;

// lz77_link: a CTA of one warp for each of kLzLinkBlocks parts of a block's hash values.
inline constexpr uint32_t kLzLinkBlocks = 16;

// lz77_table: a CTA for each part of a block, a thread for each position of a step. Steps are aligned to the block's
// start. The positions in the kLzTableBefore bytes before a part are inserted first. Entries of the tables, by the hash
// of four and of seven bytes, are positions modulo 65536, and 0 if nothing was inserted. The first position of a step
// for the upper bits of either hash is inserted.
inline constexpr uint32_t kLzTableStep = 256;
inline constexpr uint32_t kLzTablePart = 65536;
inline constexpr uint32_t kLzTableBefore = 32768;
inline constexpr uint32_t kLzTableShortBits = 12, kLzTableLongBits = 14;
inline constexpr uint32_t kLzTableNamesBits = 10;

// demux: a CTA of one warp for each segment. No token crosses the end of a segment.
inline constexpr uint32_t kLzSegmentBytes = 4096;

// A launch takes blocks of at most item_bytes, a multiple of 16. Its grid has, block by block, as many CTAs as a block
// of item_bytes needs; those past the end of a shorter block exit at once. Block i is src[i * item_bytes .. +
// sizes[i]), and the results for its positions begin at index i * item_bytes too.
//
// Parameters in order (src is 16-byte aligned; a kernel reads up to the next multiple of 16 bytes after a block):
//   lz77_link          src, sizes, matches*, item_bytes        writes `next`; the others keep it
//   lz77_hash          src, sizes, matches*, item_bytes        the longest of kLzMaxLinks candidates, the nearest of
//                                                              equals
//   lz77_table         src, sizes, matches*, item_bytes        the longest by eight bytes of five candidates: the
//                                                              previous position and four from the tables; the
//                                                              nearest of equals
//   lz77_batch         src, sizes, matches*, item_bytes        as lz77_hash, with kLzBatchMaxLinks candidates within
//                                                              kLzBatchMaxOffset
//   lz77_lazy          matches, resolved*, sizes, item_bytes   drops a match if a better one starts one or two later
//   lz77_per_position  src, sizes, matches*, item_bytes,       the longest within the window, which is cut so that
//                      window                                  window * size <= kLzMaxWindowWork; the nearest of equals
//   lz77_topk          src, sizes, matches, candidates*,       kLzTopK longest, longest first, the nearest of equals;
//                      item_bytes                              an LzMatch each, next 0
//   demux_count        matches, sizes, counts*, item_bytes     four u32 a segment: literals, matches, flag words, 0
//   demux_scatter      src, sizes, matches, counts, dst*,      an LZ block, block i's at i * dst_stride_16 * 16; the
//                      stream_offsets*, stream_sizes*,         offsets in dst of its streams, u64 each, and their
//                      item_bytes, dst_stride_16               sizes, u32 each: the input of an encoder's launch
// item_bytes, window and dst_stride_16 are u32, the others pointers; sizes are u32; * is written.

// An LZ block: raw size, literals L, matches M, flag words F, u32 each; F flag words; L literals; M lengths minus
// kLzMinMatch; M low, then M high bytes of offsets. A flag word has a bit for each of 32 tokens, the first one lowest:
// 0 is a literal, 1 a match. A segment begins with a new word.
inline constexpr uint32_t kLzBlockHeaderBytes = 16;
inline constexpr uint32_t kLzStreams = 5;  // flag words, literals, lengths, low and high bytes of offsets
constexpr uint64_t lz_block_bound(uint64_t raw_bytes) {
  return kLzBlockHeaderBytes + raw_bytes + raw_bytes / 8 + 4 * (raw_bytes / kLzSegmentBytes + 1);
}

}  // namespace ptxkit::kernels
