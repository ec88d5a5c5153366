// The LZ77 kernels: what a launch means, the matches they find, and the block that a parse becomes.
//
// A match finder says for every position of a block where the bytes from there on occurred before. `demux` goes through
// the block with one of those answers and sorts the tokens into streams of their kind; `lz77_decode` takes them back.
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
// Largest block of lz77_decode, raw or coded: larger than what the other transforms take. What a header says of a block
// within it adds up in 32 bits.
inline constexpr uint32_t kLzDecodeMaxBytes = 1u << 28;
inline constexpr uint32_t kLzHashBits = 15;
inline constexpr uint32_t kLzMaxLinks = 64;        // candidates of a position
inline constexpr uint32_t kLzBatchPositions = 32;  // of a thread of lz77_batch
inline constexpr uint32_t kLzBatchMaxLinks = 16;   // candidates of a position there: at most 512 a thread
inline constexpr uint32_t kLzBatchMaxOffset = 32768;
inline constexpr uint32_t kLzTopK = 4;
inline constexpr uint32_t kLzMaxWindow = 32768;         // of lz77_per_position
inline constexpr uint32_t kLzMaxWindowWork = 1u << 31;  // candidates of its launch: positions x window

// What a position has; three u32 in device memory. offset 0: no match. next: one more than the nearest earlier position
// whose four bytes have the same hash, 0 when there is none.
struct LzMatch {
  uint32_t offset = 0, length = 0, next = 0;

  bool operator==(const LzMatch&) const = default;
};

// The kernels that work on positions: a thread a position, or kLzBatchPositions of them.
inline constexpr uint32_t kLzBlockThreads = 128;

// lz77_link: a warp, and a CTA, for each of kLzLinkBlocks parts of the hash values of a block.
inline constexpr uint32_t kLzLinkBlocks = 16;

// lz77_table: a CTA for each part of a block, a thread for each position of a step. Steps count from the block's start;
// before the part's own come those of as many bytes before it. Entries of the tables by the hash of four bytes and of
// seven are positions modulo 65536, and those that nothing entered are 0; a step's first position by the upper bits of
// either hash enters.
inline constexpr uint32_t kLzTableStep = 256;
inline constexpr uint32_t kLzTablePart = 65536;
inline constexpr uint32_t kLzTableBefore = 32768;
inline constexpr uint32_t kLzTableShortBits = 12, kLzTableLongBits = 14;
inline constexpr uint32_t kLzTableNamesBits = 10;

// demux: a warp, and a CTA, for each segment. No token crosses the end of one.
inline constexpr uint32_t kLzSegmentBytes = 4096;

// A launch takes blocks of at most item_bytes, which is a multiple of 16; its grid has as many CTAs for each of them as
// a block of item_bytes needs, one block's after another's, and those past the end of a shorter one leave at once.
// Block i is src[i * item_bytes .. + sizes[i]), and what the kernels say of its positions begins at i * item_bytes,
// too.
//
// Parameters in order (src is 16-byte aligned; a kernel reads up to the next multiple of 16 bytes behind a block):
//   lz77_link          src, sizes, matches*, item_bytes        writes `next`; the others keep it
//   lz77_hash          src, sizes, matches*, item_bytes        the longest of kLzMaxLinks candidates, the nearest of
//                                                              equals
//   lz77_table         src, sizes, matches*, item_bytes        the longest by eight bytes of five candidates: the
//   position
//                                                              before and those of the tables; the nearest of equals
//   lz77_batch         src, sizes, matches*, item_bytes        the same of kLzBatchMaxLinks within kLzBatchMaxOffset
//   lz77_lazy          matches, resolved*, sizes, item_bytes   drops a match where a better one starts one or two later
//   lz77_per_position  src, sizes, matches*, item_bytes,       the longest within the window, which is cut so that
//                      window                                  window * size <= kLzMaxWindowWork; the nearest of equals
//   lz77_topk          src, sizes, matches, candidates*,       kLzTopK longest, longest first, the nearest of equals;
//                      item_bytes                              an LzMatch each, next 0
//   demux_count        matches, sizes, counts*, item_bytes     four u32 a segment: literals, matches, flag words, 0
//   demux_scatter      src, sizes, matches, counts, dst*,      an LZ block, block i's at i * dst_stride_16 * 16; where
//                      stream_offsets*, stream_sizes*,         in dst its streams begin, u64 each, and how long they
//                      item_bytes, dst_stride_16               are, u32 each: what an encoder's launch takes
// item_bytes, window and dst_stride_16 are u32, the others pointers; sizes are u32; * is written.

// An LZ block: raw size, literals L, matches M, flag words F, u32 each; F flag words; L literals; M lengths less
// kLzMinMatch; M low, then M high bytes of offsets. A flag word has a bit for each of 32 tokens, the first lowest: 0 is
// a literal, 1 a match. A segment begins with a new word.
inline constexpr uint32_t kLzBlockHeaderBytes = 16;
inline constexpr uint32_t kLzStreams = 5;  // flag words, literals, lengths, low and high bytes of offsets
constexpr uint64_t lz_block_bound(uint64_t raw_bytes) {
  return kLzBlockHeaderBytes + raw_bytes + raw_bytes / 8 + 4 * (raw_bytes / kLzSegmentBytes + 1);
}

}  // namespace ptxkit::kernels
