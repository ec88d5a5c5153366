// The steps by which a queue of a Machine codes blocks.
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
  std::vector<uint8_t> coded = {};  // result; empty if the coded form would not be shorter
};

inline size_t largest_raw_bytes(std::span<const BlockToEncode> blocks) {
  size_t bytes = 0;
  for (const BlockToEncode& block : blocks) bytes = std::max(bytes, block.raw.size());
  return bytes;
}

struct BlockToDecode {
  Bytes coded;
  MutableBytes raw;
  bool good = false;  // result; false if `coded` is damaged
};

// The steps of a group of blocks on its queue. The queue is waited for before every step but the first. Errors are
// those of the machine; a damaged block is not an error.
template <class Block>
using Steps = std::vector<std::function<Result<void>(unsigned queue, std::span<Block> group)>>;

class BlockPipeline {
 public:
  virtual ~BlockPipeline() = default;
  // How many blocks a queue encodes or decodes at a time, if neither form of a block exceeds `block_bytes`.
  virtual size_t encoded_at_once(size_t block_bytes) = 0;
  virtual size_t decoded_at_once(size_t block_bytes) = 0;

  // The pipeline must outlive the steps.
  virtual Steps<BlockToEncode> encoding(MatchSearch search) = 0;
  virtual Steps<BlockToDecode> decoding() = 0;
};

// BWT, move to front, zero-run coding, rANS. `executor` copies between blocks and staging memory.
std::unique_ptr<BlockPipeline> make_bbw_pipeline(Machine& machine, Executor& executor);
// LZ77, demultiplexing and an entropy coder: every other codec.
std::unique_ptr<BlockPipeline> make_lz_pipeline(Machine& machine, Executor& executor, format::PtzCodec codec);

}  // namespace ptxkit::codec
