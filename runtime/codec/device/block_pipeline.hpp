// The way of a codec's blocks through a queue of a Machine.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/device/machine.hpp"
#include "runtime/codec/format/ptz.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::codec {

struct BlockToEncode {
  Bytes raw;                        // not empty
  std::vector<uint8_t> coded = {};  // result; empty where it would not be shorter
};

inline size_t largest_raw_bytes(std::span<const BlockToEncode> blocks) {
  size_t bytes = 0;
  for (const BlockToEncode& block : blocks) bytes = std::max(bytes, block.raw.size());
  return bytes;
}

struct BlockToDecode {
  Bytes coded;
  MutableBytes raw;
  bool good = false;  // result; false where `coded` is damaged
};

// What a group of blocks goes through on its queue, which waits before each step but the first. Errors are the
// machine's; a damaged block is none.
template <class Block>
using Steps = std::vector<std::function<Result<void>(unsigned queue, std::span<Block> group)>>;

class BlockPipeline {
 public:
  virtual ~BlockPipeline() = default;
  // How many blocks a queue encodes and decodes at a time, neither form of any with more than `block_bytes`.
  virtual size_t encoded_at_once(size_t block_bytes) = 0;
  virtual size_t decoded_at_once(size_t block_bytes) = 0;

  // Of a pipeline that outlives them.
  virtual Steps<BlockToEncode> encoding(MatchSearch search) = 0;
  virtual Steps<BlockToDecode> decoding() = 0;
};

// `executor` copies between blocks and staging memory.
// BWT, move to front, zero runs, rANS.
std::unique_ptr<BlockPipeline> make_bbw_pipeline(Machine& machine, Executor& executor);
// LZ77, demux, and an entropy coder: every other codec.
std::unique_ptr<BlockPipeline> make_lz_pipeline(Machine& machine, Executor& executor, format::PtzCodec codec);

}  // namespace ptxkit::codec
