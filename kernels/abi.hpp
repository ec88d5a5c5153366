// What a kernel launch of the LZ4 family means: parameters in order, limits, flags and statuses.
//
// Kernel, scalar reference and runtime agree through this page and nothing else. Every numeric value here is written
// into device memory or into someone's file, so values are pinned: they are only ever added to.
//
// A parameter structure lists the .param slots of the entry in order; each slot has the member's type, and a pointer is
// a device address. All arrays have one element an item. "Item" is a page, a chunk or a block.
#pragma once

#include <cstdint>
#include <string_view>

namespace ptxkit::kernels {

// Entry names.
inline constexpr std::string_view kLz4CompressPage = "lz4_compress_page";
inline constexpr std::string_view kLz4CompressChunk = "lz4_compress_chunk";
inline constexpr std::string_view kLz4CompressHigh = "lz4_compress_high";
inline constexpr std::string_view kLz4MatchPage = "lz4_match_page";
inline constexpr std::string_view kLz4EncodePage = "lz4_encode_page";
inline constexpr std::string_view kLz4Decompress = "lz4_decompress";
inline constexpr std::string_view kZeroPage = "zero_page";

// Largest item of each compressor. 65536 is the reach of LZ4's 16-bit offsets and of the table's 16-bit positions.
inline constexpr uint32_t kMaxPageBytes = 4096;
inline constexpr uint32_t kMaxChunkBytes = 65536;

// Largest compressed block and largest capacity that the decompressor takes: 255 times this still fits 32 bits, so no
// length that a block can spell overflows.
inline constexpr uint32_t kMaxBlockBytes = (1u << 24) - 1;

// Unit of the strides: makes 16-byte alignment of every item a fact of the type, not a promise.
inline constexpr uint32_t kStrideUnitBytes = 16;

// Threads of a CTA (.reqntid) and items of a CTA; a warp works on one item, or a CTA does. Launch ceil(item_count /
// items) CTAs.
struct LaunchShape {
  uint32_t block_threads;
  uint32_t items_per_block;

  constexpr uint32_t grid_blocks(uint32_t item_count) const {
    return item_count / items_per_block + (item_count % items_per_block != 0);
  }
};
inline constexpr LaunchShape kLz4CompressPageShape{.block_threads = 128, .items_per_block = 4};
inline constexpr LaunchShape kLz4CompressChunkShape{.block_threads = 256, .items_per_block = 1};
inline constexpr LaunchShape kLz4DecompressShape{.block_threads = 64, .items_per_block = 2};
inline constexpr LaunchShape kZeroPageShape{.block_threads = 128, .items_per_block = 4};

// What a compressor or `zero_page` says of an item.
enum class PageFlag : uint8_t {
  compressed = 0,      // dst holds a standard LZ4 block of dst_sizes[i] < src_sizes[i] bytes
  incompressible = 1,  // no gain: dst holds the src_sizes[i] raw bytes; dst_sizes[i] == src_sizes[i]
  zero = 2,            // every byte is zero (or there is none): nothing stored; dst_sizes[i] == 0
  refused = 3,         // larger than the kernel's limit or than a stride: item not read; dst_sizes[i] == 0
};

// `lz4_compress_page` (items to kMaxPageBytes), `lz4_compress_chunk` and `lz4_compress_high` (to kMaxChunkBytes; both
// of kLz4CompressChunkShape).
// Item i is src[i * src_stride_16 * 16 .. + src_sizes[i]); its output goes to dst + i * dst_stride_16 * 16 and never
// beyond src_sizes[i] bytes of it. Bytes of that room past dst_sizes[i] are unspecified. Reads are aligned and up
// to 16 bytes wide, so up to fifteen bytes past an item, to the next multiple of 16, are read and ignored.
struct Lz4CompressParameters {
  uint64_t src;            // const u8*, 16-byte aligned, item_count * src_stride_16 * 16 bytes
  uint64_t src_sizes;      // const u32*
  uint64_t dst;            // u8*, 16-byte aligned, item_count * dst_stride_16 * 16 bytes
  uint64_t dst_sizes;      // u32*
  uint64_t flags;          // u8*, PageFlag
  uint32_t src_stride_16;  // units of 16 bytes
  uint32_t dst_stride_16;  // units of 16 bytes
  uint32_t item_count;
};

// `lz4_match_page`, then `lz4_encode_page`: the bytes of `lz4_compress_page` in two launches of its shape. Items as
// above. The first lists the matches of item i at matches + 2 * kMaxPageMatches * i: first byte in the low half of a
// word and end in the high half, then the place of the earlier bytes. Its flags are compressed (match_counts[i] matches
// are listed), zero and refused; the second reads them and leaves those of `lz4_compress_page`.
inline constexpr uint32_t kMaxPageMatches = kMaxPageBytes / 4;
struct Lz4MatchParameters {
  uint64_t src;            // const u8*, 16-byte aligned, item_count * src_stride_16 * 16 bytes
  uint64_t src_sizes;      // const u32*
  uint64_t matches;        // u32*, 8-byte aligned, item_count * 2 * kMaxPageMatches
  uint64_t match_counts;   // u32*
  uint64_t flags;          // u8*, PageFlag
  uint32_t src_stride_16;  // units of 16 bytes
  uint32_t item_count;
};
struct Lz4EncodeParameters {
  uint64_t src;            // const u8*, 16-byte aligned, item_count * src_stride_16 * 16 bytes
  uint64_t src_sizes;      // const u32*
  uint64_t matches;        // const u32*, as lz4_match_page left them
  uint64_t match_counts;   // const u32*
  uint64_t dst;            // u8*, 16-byte aligned, item_count * dst_stride_16 * 16 bytes
  uint64_t dst_sizes;      // u32*
  uint64_t flags;          // u8*, PageFlag, read and written
  uint32_t src_stride_16;  // units of 16 bytes
  uint32_t dst_stride_16;  // units of 16 bytes
  uint32_t item_count;
};

// `zero_page`: flags[i] = PageFlag::zero or PageFlag::compressed (that is, 2 or 0). Items as above, of any size that
// fits the stride; an item larger than the stride gets PageFlag::refused.
struct ZeroPageParameters {
  uint64_t src;            // const u8*, 16-byte aligned, item_count * src_stride_16 * 16 bytes
  uint64_t src_sizes;      // const u32*
  uint64_t flags;          // u8*, PageFlag
  uint32_t src_stride_16;  // units of 16 bytes
  uint32_t item_count;
};

// Why a block was or was not decoded.
enum class Lz4Status : uint32_t {
  ok = 0,
  input_overrun = 1,        // the block ends inside a sequence (or is empty)
  output_overrun = 2,       // the block decodes to more than the item's capacity
  offset_zero = 3,          // a match with offset 0
  offset_out_of_range = 4,  // a match that starts before the item's first output byte
  item_too_large = 5,       // block or capacity above kMaxBlockBytes; nothing was read
};

// `lz4_decompress`: any block that follows the LZ4 block format, by any encoder; src and dst need no alignment.
// Item i is src[src_offsets[i] .. + src_sizes[i]) and decodes into dst[dst_offsets[i] .. + dst_capacities[i]).
// Nothing outside these two ranges is read or written. On any status but ok, dst_sizes[i] is 0 and the item's room
// holds unspecified bytes.
struct Lz4DecompressParameters {
  uint64_t src;             // const u8*
  uint64_t src_offsets;     // const u64*, bytes
  uint64_t src_sizes;       // const u32*
  uint64_t dst;             // u8*
  uint64_t dst_offsets;     // const u64*, bytes
  uint64_t dst_capacities;  // const u32*
  uint64_t dst_sizes;       // u32*
  uint64_t statuses;        // u32*, Lz4Status
  uint32_t item_count;
};

// Markers of the debug builds, set by lane 0 of an item's warp; docs/dsl.md has the layout of the buffer.
enum class Mark : uint32_t {
  item = 1,    // the warp begins; value: the item's size in bytes
  parse = 2,   // what stands at this position of the input is about to be read: a window, or a sequence
  emit = 3,    // bytes of the output are about to be written from this position on
  status = 4,  // the warp is done; value: PageFlag or Lz4Status
};

// One line for a person: lower case, without a final period.
constexpr std::string_view status_text(Lz4Status status) {
  switch (status) {
    case Lz4Status::ok:
      return "decoded";
    case Lz4Status::input_overrun:
      return "the block ends inside a sequence";
    case Lz4Status::output_overrun:
      return "the block decodes to more bytes than its room";
    case Lz4Status::offset_zero:
      return "a match has offset 0";
    case Lz4Status::offset_out_of_range:
      return "a match starts before the first output byte";
    case Lz4Status::item_too_large:
      return "the block or its room is larger than 16777215 bytes";
  }
  return "unknown status";
}

}  // namespace ptxkit::kernels
