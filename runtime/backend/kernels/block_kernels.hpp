// The blocks of `.ptz` on a Machine: what encode_block and decode_block do as kernels, the bytes the same.
//
// As many groups of blocks are under way as there are queues. A group is one block with codecs of LZ77, whose kernels
// spread over a block and take about 30 bytes for each of its; with bbw it is as many as keep a GPU busy, as a block
// has a CTA there, or as many as fit into a queue's memory, about 27 bytes for each of theirs. Encoding waits once in
// the middle, since only then is known how long the streams are.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "runtime/backend/kernels/block_pipeline.hpp"

namespace ptxkit::codec {

class BlockKernels {
 public:
  explicit BlockKernels(std::unique_ptr<Machine> machine) : machine_(std::move(machine)) {}

  std::string description() const { return machine_->description(); }
  // As many blocks of at most `raw_bytes` at a time keep every queue busy.
  std::size_t batch_blocks(format::PtzCodec codec, std::size_t raw_bytes);

  // An error is one of the machine; a damaged block is none.
  Result<void> encode(format::PtzCodec codec, std::span<BlockToEncode> blocks);
  Result<void> decode(format::PtzCodec codec, std::span<BlockToDecode> blocks);

 private:
  BlockPipeline& pipeline(format::PtzCodec codec);

  std::unique_ptr<Machine> machine_;
  std::map<format::PtzCodec, std::unique_ptr<BlockPipeline>> pipelines_;
};

}  // namespace ptxkit::codec
