// The interface of the coders of blocks: the CPU, kernels on devices, or both. A block is one of `.ptz`, or what a
// standard format codes apart: a range of a Zstandard frame, a member of gzip. All coders give the same bytes of
// `.ptz`, and bytes that every reader takes of a standard format, so a stream may change from one to another between
// two blocks.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/ptz.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {

// Zstandard. A block to encode is a range of a frame, and becomes whole blocks of Zstandard, none of them marked as the
// last one, that do not look back beyond its begin; they may be longer than the range. A block to decode is a frame
// that says the size of its content.
struct ZstdCoding {
  int level = 0;  // of libzstd; 0 for decoding

  auto operator<=>(const ZstdCoding&) const = default;
};
// Kernels encode these levels, to blocks of their own (docs/zstd.md).
constexpr bool has_kernels(const ZstdCoding& coding) { return coding.level >= 0 && coding.level <= 2; }

// gzip. A block to encode has at most format::kBgzfRawBytes and becomes a member of BGZF; a block to decode is a member
// of BGZF.
struct GzipCoding {
  int level = 0;  // of libdeflate; 0 for decoding

  auto operator<=>(const GzipCoding&) const = default;
};
// Kernels encode these levels, to members of their own (docs/deflate.md).
constexpr bool has_kernels(const GzipCoding& coding) { return coding.level >= 0 && coding.level <= 6; }

using BlockCoding = std::variant<format::PtzCoding, ZstdCoding, GzipCoding>;

struct BlockToEncode {
  format::Bytes raw;                // not empty
  std::vector<uint8_t> coded = {};  // result; of `.ptz`, empty if the coded form would not be shorter
};

inline size_t largest_raw_bytes(std::span<const BlockToEncode> blocks) {
  size_t bytes = 0;
  for (const BlockToEncode& block : blocks) bytes = std::max(bytes, block.raw.size());
  return bytes;
}

struct BlockToDecode {
  format::Bytes coded;
  format::MutableBytes raw;
  bool good = false;  // result; false if `coded` is damaged
};

// The largest raw or coded size of any block.
inline size_t largest_bytes(std::span<const BlockToDecode> blocks) {
  size_t bytes = 0;
  for (const BlockToDecode& block : blocks) bytes = std::max({bytes, block.raw.size(), block.coded.size()});
  return bytes;
}

// One call at a time.
class BlockCoder {
 public:
  virtual ~BlockCoder() = default;
  // For users: "cpu, 16 threads", "cuda, device 0, NVIDIA H200, …".
  virtual std::string description() const = 0;
  // The number of blocks of up to `raw_bytes` bytes that keeps the coder busy, for encoding and decoding.
  virtual size_t batch_blocks(const BlockCoding& codec, size_t raw_bytes) = 0;
  // The largest number of blocks that are coded at a time in host memory, each in encoding_bytes or decoding_bytes.
  // Blocks on a device do not count.
  virtual size_t blocks_in_host_memory() const = 0;
  // Whether the coder may take page-locked memory for a device.
  virtual bool may_use_device() const = 0;
  // Whether a device is being started in the background. The destructor waits for it; a program that has finished its
  // work can call _exit in its place.
  virtual bool is_starting_device() const { return false; }

  // An error means that the coder failed. A damaged block is not an error: decode() sets its `good` to false.
  virtual Result<void> encode(const BlockCoding& codec, std::span<BlockToEncode> blocks,
                              MatchSearch search = MatchSearch::chains) = 0;
  virtual Result<void> decode(const BlockCoding& codec, std::span<BlockToDecode> blocks) = 0;
};

}  // namespace ptxkit::codec
