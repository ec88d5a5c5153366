// The ABI of the LZ4 kernels: parameters in order, limits, flags and statuses.
//
// Kernels, scalar references and the runtime share this header and no other definition. Every numeric value here is
// written into device memory or into a user's file, so values are never changed or reused, only added.
//
// A parameter structure lists the .param slots of the entry in order. Each slot has the member's type; a pointer is a
// device address. Arrays have one element for each item. An item is a page, a chunk or a block.
#pragma once

#include <cstdint>
#include <string_view>

namespace ptxkit::kernels {

// Names of the entries.
inline constexpr std::string_view kLz4CompressPage = "lz4_compress_page";
inline constexpr std::string_view kLz4CompressChunk = "lz4_compress_chunk";
inline constexpr std::string_view kLz4CompressHigh = "lz4_compress_high";
inline constexpr std::string_view kLz4MatchPage = "lz4_match_page";
inline constexpr std::string_view kLz4EncodePage = "lz4_encode_page";
inline constexpr std::string_view kLz4Decompress = "lz4_decompress";
inline constexpr std::string_view kLz4BatchCompressPage = "lz4_batch_compress_page";
inline constexpr std::string_view kLz4BatchCompressChunk = "lz4_batch_compress_chunk";
inline constexpr std::string_view kLz4BatchPlan = "lz4_batch_plan";
inline constexpr std::string_view kLz4BatchJoin = "lz4_batch_join";
inline constexpr std::string_view kLz4BatchDecompress = "lz4_batch_decompress";
inline constexpr std::string_view kLz4BatchIndex = "lz4_batch_index";
inline constexpr std::string_view kLz4BatchBlocks = "lz4_batch_blocks";
inline constexpr std::string_view kLz4BatchFinish = "lz4_batch_finish";
inline constexpr std::string_view kLz4BatchSizes = "lz4_batch_sizes";
inline constexpr std::string_view kZeroPage = "zero_page";
inline constexpr std::string_view kCopyItems = "copy_items";

// The largest item of each compressor in bytes. LZ4's 16-bit offsets and the table's 16-bit positions reach 65536.
inline constexpr uint32_t kMaxPageBytes = 4096;
inline constexpr uint32_t kMaxChunkBytes = 65536;

// The largest compressed block and the largest capacity that the decompressor accepts, in bytes. 255 times this value
// fits 32 bits, so no length in a block overflows.
inline constexpr uint32_t kMaxBlockBytes = (1u << 24) - 1;

// The unit of strides. With it, the type guarantees the 16-byte alignment of every item.
inline constexpr uint32_t kStrideUnitBytes = 16;

// Threads of a CTA (.reqntid) and items of a CTA. Either a warp or the whole CTA works on one item. A launch has
// ceil(item_count / items_per_block) CTAs.
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
inline constexpr LaunchShape kLz4BatchPlanShape{.block_threads = 128, .items_per_block = 4};
inline constexpr LaunchShape kLz4BatchJoinShape{.block_threads = 256, .items_per_block = 1};
inline constexpr LaunchShape kZeroPageShape{.block_threads = 128, .items_per_block = 4};
inline constexpr LaunchShape kCopyItemsShape{.block_threads = 128, .items_per_block = 4};

// The result of a compressor or of `zero_page` for an item.
enum class PageFlag : uint8_t {
  compressed = 0,      // dst holds a standard LZ4 block of dst_sizes[i] < src_sizes[i] bytes
  incompressible = 1,  // no gain: dst holds the src_sizes[i] raw bytes; dst_sizes[i] == src_sizes[i]
  zero = 2,            // every byte is zero, or the item is empty: nothing stored; dst_sizes[i] == 0
  refused = 3,         // larger than the kernel's limit or than a stride: item not read; dst_sizes[i] == 0
};

// Parameters of `lz4_compress_page` (items up to kMaxPageBytes), and of `lz4_compress_chunk` and `lz4_compress_high`
// (up to kMaxChunkBytes, both in kLz4CompressChunkShape).
// Item i is src[i * src_stride_16 * 16 .. + src_sizes[i]). Its output starts at dst + i * dst_stride_16 * 16 and
// occupies at most src_sizes[i] bytes; those after the first dst_sizes[i] are unspecified. Reads are aligned and up to
// 16 bytes wide, so up to fifteen bytes after an item, to the next multiple of 16, are read and ignored.
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

// Parameters of `lz4_match_page` and `lz4_encode_page`, which together produce the bytes of `lz4_compress_page` in two
// launches of its shape. Items are as above. `lz4_match_page` lists the matches of item i at matches + 2 *
// kMaxPageMatches * i, two words each: the position in the low half of the first word, the end in the high half, and
// the candidate's position in the second. Its flags are compressed (match_counts[i] matches are listed), zero and
// refused. `lz4_encode_page` reads them and writes the flags of `lz4_compress_page`.
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
  uint64_t matches;        // const u32*, as lz4_match_page wrote them
  uint64_t match_counts;   // const u32*, as lz4_match_page wrote them
  uint64_t dst;            // u8*, 16-byte aligned, item_count * dst_stride_16 * 16 bytes
  uint64_t dst_sizes;      // u32*
  uint64_t flags;          // u8*, PageFlag, read and written
  uint32_t src_stride_16;  // units of 16 bytes
  uint32_t dst_stride_16;  // units of 16 bytes
  uint32_t item_count;
};

// Parameters of `zero_page`. flags[i] becomes PageFlag::zero or PageFlag::compressed (2 or 0). Items are as above, of
// any size up to the stride. A larger item gets PageFlag::refused.
struct ZeroPageParameters {
  uint64_t src;            // const u8*, 16-byte aligned, item_count * src_stride_16 * 16 bytes
  uint64_t src_sizes;      // const u32*
  uint64_t flags;          // u8*, PageFlag
  uint32_t src_stride_16;  // units of 16 bytes
  uint32_t item_count;
};

// Parameters of `copy_items`. The sizes[i] bytes at offset offsets[i] of `src` are copied to that offset of `dst`,
// which the device may reach over the bus. Items do not overlap. A launch may have fewer CTAs than its shape says.
struct CopyItemsParameters {
  uint64_t src;      // const u8*, 16-byte aligned
  uint64_t offsets;  // const u64*
  uint64_t sizes;    // const u32*
  uint64_t dst;      // u8*, 16-byte aligned
  uint32_t item_count;
};

// Whether a block was decoded, and why not.
enum class Lz4Status : uint32_t {
  ok = 0,
  input_overrun = 1,        // the block ends inside a sequence (or is empty)
  output_overrun = 2,       // the block decodes to more than the item's capacity
  offset_zero = 3,          // a match with offset 0
  offset_out_of_range = 4,  // a match that starts before the item's first output byte
  item_too_large = 5,       // block or capacity above kMaxBlockBytes; nothing was read
};

// Parameters of `lz4_decompress`, which accepts any block in the LZ4 block format from any encoder. src and dst need no
// alignment. Item i is src[src_offsets[i] .. + src_sizes[i]) and is decoded into dst[dst_offsets[i] .. +
// dst_capacities[i]). No byte outside these two ranges is read or written. If the status is not ok, dst_sizes[i] is 0
// and the output range holds unspecified bytes.
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

// The kernels of batches take arrays of addresses and of u64 sizes in device memory, one element for each item, as
// nvCOMP, PyTorch and CuPy have them. An item may lie anywhere.

// What stands around an item's LZ4 encoding.
enum class BatchFraming : uint32_t {
  raw = 0,        // nothing: one LZ4 block
  numcodecs = 1,  // u32, little-endian: the raw size; then one LZ4 block. As numcodecs.LZ4 and python-lz4's lz4.block
  frame = 2,      // LZ4 frames, and skippable frames
  hdf5 = 3,       // a chunk of HDF5 filter 32004: raw size (u64), raw size of a block (u32), blocks behind their size
                  // (u32); all big-endian. A block of its raw size is not coded
};

constexpr bool has_blocks(BatchFraming framing) {
  return framing == BatchFraming::frame || framing == BatchFraming::hdf5;
}

// Added to the framing of lz4_batch_compress_chunk: it takes items of at most a page as well, and completes every item
// of the batch. Then no item may be larger than a page. Few pages do not fill a device with a warp each.
inline constexpr uint32_t kBatchPagesByBlock = 256;

// What became of an item of a batch. Values are those of nvCOMP where it has the same status.
enum class BatchStatus : uint32_t {
  ok = 0,
  invalid_value = 10,      // the address of an item or of its room that is not empty is null
  unsupported = 11,        // a legacy LZ4 frame, or one that needs a dictionary; for sizes, one that does not state it
  cannot_decompress = 12,  // the encoding is malformed
  bad_checksum = 13,       // of a frame's header, of a block, or of a frame's content
  output_too_small = 15,   // the item decodes to more than its capacity
  misaligned = 17,         // the address of an item to compress is no multiple of 16
  too_large = 18,          // the item is larger than the kernel's limit, or than the call says
};

// The most that an item of a batch may have decoded, LZ4_MAX_INPUT_SIZE, and coded.
inline constexpr uint32_t kMaxBatchRawBytes = 0x7E000000;
inline constexpr uint32_t kMaxBatchCodedBytes = 0x7FFFFFFF;

// What is known of a chunk of an item that has several: its encoding in its slot, and where the parts of that go.
struct Lz4BatchRecord {
  uint32_t coded_bytes;          // of its block in the slot; 0: the chunk is all literals
  uint32_t last_literal_count;   // of the block
  uint32_t unused[2];            // so that four words at a time are aligned
  uint32_t first_literal_count;  // of the block
  uint32_t body_at;              // where what follows the first literals goes, after the item's header
  uint32_t run_begin;            // where the literals that end with the first ones of the block begin in the item
  uint32_t shift;                // what to add to the position in the item of a literal after the block's last match;
                                 // of framings of blocks, where the block's header goes
};

// Parameters of the kernels that compress batches: `lz4_batch_compress_page` in kLz4CompressPageShape for item_count
// items, then `lz4_batch_compress_chunk` in kLz4CompressChunkShape for item_count * chunks_per_item, `lz4_batch_plan`
// in kLz4BatchPlanShape for item_count, `lz4_batch_join` in kLz4BatchJoinShape for item_count * chunks_per_item. The
// second may be left out if max_input_bytes <= kMaxPageBytes, the last two if it is <= kMaxChunkBytes and the framing
// has no blocks. Item i is the
// input_bytes[i] bytes at inputs[i], a multiple of 16, and is encoded at outputs[i], where
// lz4_batch_bound(input_bytes[i]) bytes may be written. Reads are aligned: up to fifteen bytes after an item, to the
// next multiple of 16, are read and ignored. Unless the last two are left out, `slots` has
// lz4_batch_slot_bytes(max_input_bytes), at most kMaxChunkBytes, and `chunk_records` one element for each chunk of each
// item: chunk c of item i is number i * chunks_per_item + c.
struct Lz4BatchCompressParameters {
  uint64_t inputs;           // const u64*, addresses
  uint64_t input_bytes;      // const u64*
  uint64_t outputs;          // const u64*, addresses
  uint64_t output_bytes;     // u64*
  uint64_t statuses;         // u32*, BatchStatus, or null
  uint64_t chunk_records;    // Lz4BatchRecord*, 16-byte aligned
  uint64_t slots;            // u8*, 16-byte aligned
  uint32_t max_input_bytes;  // at most kMaxBatchRawBytes; a larger item is an error of that item
  uint32_t chunks_per_item;  // of an item of max_input_bytes; at least 1
  uint32_t framing;          // BatchFraming, or with kBatchPagesByBlock
  uint32_t item_count;
};

// Of framings `frame` and `hdf5`: what stands before the blocks, before each, and behind them.
inline constexpr uint32_t kFrameHeaderBytes = 15, kHdf5HeaderBytes = 12;
inline constexpr uint32_t kBlockHeaderBytes = 4, kFrameEndBytes = 4;

// The most that an item of `raw_bytes` takes, header and all.
constexpr uint64_t lz4_batch_bound(uint64_t raw_bytes, BatchFraming framing = BatchFraming::raw) {
  if (!has_blocks(framing)) return raw_bytes + raw_bytes / 255 + 16;
  const uint64_t blocks = (raw_bytes + (kMaxChunkBytes - 1)) / kMaxChunkBytes;
  const uint64_t around = framing == BatchFraming::frame ? kFrameHeaderBytes + kFrameEndBytes : kHdf5HeaderBytes;
  return raw_bytes + blocks * kBlockHeaderBytes + around;
}

// The bytes from one slot to the next, if items have up to `max_input_bytes`.
template <class Bytes>
constexpr auto lz4_batch_slot_bytes(const Bytes& max_input_bytes) {
  return (max_input_bytes + (kStrideUnitBytes - 1)) / kStrideUnitBytes * kStrideUnitBytes;
}

// Parameters of `lz4_batch_decompress`, in kLz4DecompressShape, which decodes item i, input_bytes[i] bytes at
// inputs[i], into at most output_capacities[i] bytes at outputs[i] (of a larger capacity, kMaxBatchRawBytes). Neither
// needs an alignment. No byte outside these two ranges is read or written. output_bytes and statuses may be null. If
// the status is not ok, output_bytes[i] is 0 and the output holds unspecified bytes.
struct Lz4BatchDecompressParameters {
  uint64_t inputs;             // const u64*, addresses
  uint64_t input_bytes;        // const u64*
  uint64_t outputs;            // const u64*, addresses
  uint64_t output_capacities;  // const u64*
  uint64_t output_bytes;       // u64*, or null
  uint64_t statuses;           // u32*, BatchStatus, or null
  uint32_t framing;            // BatchFraming::raw or numcodecs
  uint32_t item_count;
};

// What `lz4_batch_index` knows of an item.
struct Lz4BatchLayout {
  uint32_t status;       // BatchStatus, by its headers
  uint32_t block_count;  // that were listed; 0: lz4_batch_finish decodes the item
  uint32_t block_bytes;  // raw, of each block but the last
  uint32_t raw_bytes;    // of the item, or the most that it may have
  uint32_t flags;        // the following
  uint32_t checksum_at;  // where the checksum of the content is in the item; 0: there is none
};
inline constexpr uint32_t kLayoutIsExact = 1;  // the headers state raw_bytes
inline constexpr uint32_t kLayoutHasBlockChecksums = 2;
struct Lz4BatchBlock {
  uint32_t begin;        // in the item
  uint32_t coded_bytes;  // or with kBlockIsRaw
};
inline constexpr uint32_t kBlockIsRaw = 1u << 31;
inline constexpr uint32_t kBlockNotDecoded = ~0u;  // in place of its raw bytes

// Parameters of the kernels that decompress items of framings `frame` and `hdf5`: `lz4_batch_index` in
// kLz4BatchPlanShape for item_count items, then `lz4_batch_blocks` for item_count * blocks_per_item and
// `lz4_batch_finish` for item_count, both in kLz4DecompressShape. The arrays are those of `lz4_batch_decompress`. The
// second may be left out if blocks_per_item is 0. Blocks of items that have more than blocks_per_item, several frames,
// or blocks that depend on each other or are not full, are decoded one after another.
struct Lz4BatchFramedParameters {
  uint64_t inputs;             // const u64*, addresses
  uint64_t input_bytes;        // const u64*
  uint64_t outputs;            // const u64*, addresses
  uint64_t output_capacities;  // const u64*
  uint64_t output_bytes;       // u64*, or null
  uint64_t statuses;           // u32*, BatchStatus, or null
  uint64_t layouts;            // Lz4BatchLayout*, one for each item
  uint64_t blocks;             // Lz4BatchBlock*, blocks_per_item for each item
  uint64_t block_raw_bytes;    // u32*, the same number
  uint32_t blocks_per_item;
  uint32_t framing;  // BatchFraming::frame or hdf5
  uint32_t item_count;
};

// Parameters of `lz4_batch_sizes`, in kLz4DecompressShape: output_bytes[i] becomes what `lz4_batch_decompress` makes of
// item i given the room, or 0. In framing `raw` all of the block is read, in the others the headers are.
struct Lz4BatchSizesParameters {
  uint64_t inputs;        // const u64*, addresses
  uint64_t input_bytes;   // const u64*
  uint64_t output_bytes;  // u64*
  uint64_t statuses;      // u32*, BatchStatus, or null
  uint32_t framing;       // BatchFraming
  uint32_t item_count;
};

// Markers of the debug builds, written by lane 0 of an item's warp, or by the first thread of its CTA. docs/dsl.md
// describes the buffer.
enum class Mark : uint32_t {
  item = 1,    // the warp begins; value: the item's size in bytes
  parse = 2,   // value: the position in the input of the window or sequence that the warp reads next
  emit = 3,    // value: the position in the output from which the warp writes next
  status = 4,  // the warp is done; value: PageFlag, Lz4Status, BatchStatus or StreamStatus; 0 without one
};

// A description for people: lower case, without a final period.
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
