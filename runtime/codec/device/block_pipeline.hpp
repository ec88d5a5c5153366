// The steps by which a queue of a Machine codes blocks.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/device/declared_costs.hpp"
#include "runtime/codec/device/machine.hpp"
#include "runtime/codec/format/ptz.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {

// The steps of a group of blocks on its queue. The queue is waited for before every step but the first. Errors are
// those of the machine; a damaged block is not an error.
template <class Block>
using Steps = std::vector<std::function<Result<void>(unsigned queue, std::span<Block> group)>>;

class BlockPipeline {
 public:
  virtual ~BlockPipeline() = default;
  // The plan for `block_count` blocks, neither form of which exceeds `block_bytes`. The plan of a decoding takes every
  // stream as coded. Fails without an image of one of the kernels.
  virtual Result<LaunchPlan> encoding_plan(uint32_t block_count, size_t block_bytes, MatchSearch search) = 0;
  virtual Result<LaunchPlan> decoding_plan(uint32_t block_count, size_t block_bytes) = 0;
  // How many blocks a queue encodes or decodes at a time, if neither form of a block exceeds `block_bytes`.
  virtual size_t encoded_at_once(size_t block_bytes) = 0;
  virtual size_t decoded_at_once(size_t block_bytes) = 0;

  // The pipeline must outlive the steps.
  virtual Steps<BlockToEncode> encoding(MatchSearch search) = 0;
  virtual Steps<BlockToDecode> decoding() = 0;
};

// As many blocks as one launch should carry and a queue can hold, if one block has this plan. Without a plan the answer
// is 1, and beginning a group reports the error.
size_t blocks_at_once(const Machine& machine, size_t block_bytes, const Result<LaunchPlan>& of_one);
// The error for a kernel that has refused a block that is within its limits.
tl::unexpected<Error> refused_block(const Machine& machine);

// BWT, move to front, zero-run coding, rANS. `executor` copies between blocks and staging memory.
std::unique_ptr<BlockPipeline> make_bbw_pipeline(Machine& machine, Executor& executor);
// Typed rANS.
std::unique_ptr<BlockPipeline> make_typed_pipeline(Machine& machine, Executor& executor,
                                                   const format::PtzCoding& codec);
// Zstandard. Encodes the levels that has_kernels() names.
std::unique_ptr<BlockPipeline> make_zstd_pipeline(Machine& machine, Executor& executor, const ZstdCoding& coding);
// gzip. The same.
std::unique_ptr<BlockPipeline> make_gzip_pipeline(Machine& machine, Executor& executor, const GzipCoding& coding);
// LZ77, demultiplexing and an entropy coder: every other codec.
std::unique_ptr<BlockPipeline> make_lz_pipeline(Machine& machine, Executor& executor, const format::PtzCoding& codec);
// The one for `codec`.
std::unique_ptr<BlockPipeline> make_block_pipeline(Machine& machine, Executor& executor, const BlockCoding& codec);

}  // namespace ptxkit::codec
