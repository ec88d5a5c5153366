// The way of a codec's blocks through a queue of a Machine.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/backend/kernels/machine.hpp"
#include "runtime/codec/executor.hpp"
#include "runtime/format/ptz.hpp"

namespace ptxkit::codec {

struct BlockToEncode {
  Bytes raw;                             // not empty
  std::vector<std::uint8_t> coded = {};  // result; empty where it would not be shorter
};

struct BlockToDecode {
  Bytes coded;
  MutableBytes raw;
  bool good = false;  // result; false where `coded` is damaged
};

// A queue waits between the steps of one way. Errors are the machine's; a damaged block is none.
class BlockPipeline {
 public:
  virtual ~BlockPipeline() = default;
  // How many blocks a queue encodes and decodes at a time, neither form of any with more than `block_bytes`.
  virtual std::size_t encoded_at_once(std::size_t block_bytes) const = 0;
  virtual std::size_t decoded_at_once(std::size_t block_bytes) const = 0;

  virtual Result<void> begin_encoding(unsigned queue, std::span<const BlockToEncode> blocks) = 0;
  // Now that it is known how long the streams are.
  virtual Result<void> fetch_coded(unsigned queue, std::span<BlockToEncode> blocks) = 0;
  virtual Result<void> collect_coded(unsigned queue, std::span<BlockToEncode> blocks) = 0;

  virtual Result<void> begin_decoding(unsigned queue, std::span<const BlockToDecode> blocks) = 0;
  virtual Result<void> collect_raw(unsigned queue, std::span<BlockToDecode> blocks) = 0;
};

// `executor` copies between blocks and staging memory.
// BWT, move to front, zero runs, rANS.
std::unique_ptr<BlockPipeline> make_bbw_pipeline(Machine& machine, Executor& executor);
// LZ77, demux, and an entropy coder: every other codec.
std::unique_ptr<BlockPipeline> make_lz_pipeline(Machine& machine, Executor& executor, format::PtzCodec codec);

}  // namespace ptxkit::codec
