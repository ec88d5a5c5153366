// Zstandard on a CPU, by libzstd: ranges of a frame that are coded apart, whole frames, and frames block by block.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/cpu/coder_item.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/zstd_frame.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {

std::string libzstd_name();  // "libzstd 1.5.4"
// libzstd's levels. ptx-pack's -1, -2 and -3 are 1, 2 and 3.
int least_zstd_level();
int greatest_zstd_level();
int default_zstd_level();  // of libzstd

// The raw bytes of every range but the last: 512 KiB up to level 3, otherwise the level's window, at most 8 MiB.
size_t zstd_range_bytes(int level);
// log2 of the window that ranges of this length need.
unsigned zstd_window_bits(int level, size_t range_bytes);
// The most bytes of a frame of one item.
size_t zstd_item_bound(size_t raw_bytes);
// The most bytes of the blocks of a range.
size_t zstd_range_bound(size_t raw_bytes);
// What a thread needs in memory to code a range of `range_bytes`.
size_t zstd_encoding_bytes(int level, size_t range_bytes);

// A whole frame, or blocks of one.
struct ZstdPart {
  Bytes stored;                               // from a frame's header or a block on
  size_t header_bytes = 0;                    // of the frame's header in `stored`; 0: the part does not begin a frame
  std::span<const format::ZstdBlock> blocks;  // in `stored`, behind the header; the checksum follows the last one
  MutableBytes room;                          // for as many bytes as the blocks may stand for
  // Results:
  size_t raw_bytes = 0;
  const char* fault = nullptr;  // libzstd's name of what is wrong; null if nothing is
  bool is_bad_checksum = false;
  const format::ZstdBlock* bad_block = nullptr;  // null where the fault is in none of the blocks
};

// One call of decode_next() at a time; others may be called from several threads. `executor` must outlive it.
class ZstdCoder {
 public:
  explicit ZstdCoder(Executor& executor);
  ~ZstdCoder();

  std::string description() const;  // for users: "cpu, 16 threads, libzstd 1.5.4"

  // Items that are frames of their own, in parallel. They say the size of their content. Any number of frames may make
  // an item that is decompressed.
  void compress(std::span<CoderItem> items, int level, bool has_checksum);
  void decompress(std::span<CoderItem> items);

  // Codes ranges (ZstdCoding): any number of them makes a frame. The bytes depend on level and content alone.
  Result<void> encode(std::span<BlockToEncode> ranges, int level);
  // Decodes parts that are whole frames, up to `at_a_time` in parallel.
  void decode_frames(std::span<ZstdPart* const> frames, unsigned at_a_time);
  // Decodes the next part of a frame, in order. A part that begins a frame drops what was left of the one before.
  void decode_next(ZstdPart& part);

  // The memory that decode_frames() takes for each thread, and decode_next() for a frame with this header.
  static size_t frame_decoding_bytes();
  static size_t part_decoding_bytes(const format::ZstdFrameHeader& header);

 private:
  struct Contexts;

  Executor& executor_;
  std::unique_ptr<Contexts> contexts_;
};

}  // namespace ptxkit::codec
