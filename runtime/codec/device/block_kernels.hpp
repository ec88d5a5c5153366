// The blocks of `.ptz` on Machines: what encode_block and decode_block do as kernels, the bytes the same.
//
// As many groups of blocks are under way as there are queues; a queue begins its next group as soon as its last is
// collected. A group is as many blocks as keep a GPU busy, a block having a warp there where LZ77 decodes and a CTA
// with bbw, or as many as fit into a queue's memory: encoding takes about 27 bytes for each of theirs. A few blocks are
// shared out among all queues. Encoding waits once in the middle, since only then is known how long the streams are.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/codec/device/block_pipeline.hpp"

namespace ptxkit::codec {

class BlockKernels {
 public:
  // At least one machine; several share the blocks of a call. `executor` copies between blocks and staging memory, and
  // must outlive this.
  BlockKernels(std::vector<std::unique_ptr<Machine>> machines, Executor& executor);
  BlockKernels(std::unique_ptr<Machine> machine, Executor& executor);

  std::string description() const;
  // As many blocks of at most `raw_bytes` at a time keep every queue of every machine busy, whatever is done to them.
  size_t batch_blocks(format::PtzCodec codec, size_t raw_bytes);

  // An error is one of the machine; a damaged block is none.
  Result<void> encode(format::PtzCodec codec, std::span<BlockToEncode> blocks,
                      MatchSearch search = MatchSearch::chains);
  Result<void> decode(format::PtzCodec codec, std::span<BlockToDecode> blocks);

 private:
  struct Device {
    BlockPipeline& pipeline(format::PtzCodec codec);
    size_t batch_blocks(format::PtzCodec codec, size_t raw_bytes);

    std::unique_ptr<Machine> machine;
    Executor& executor;
    std::map<format::PtzCodec, std::unique_ptr<BlockPipeline>> pipelines = {};
  };

  // work(device, blocks) -> Result<void> for all blocks, as many at a time as a device takes.
  template <class Block, class Work>
  Result<void> on_devices(format::PtzCodec codec, std::span<Block> blocks, size_t raw_bytes, const Work& work);

  std::vector<Device> devices_;
};

}  // namespace ptxkit::codec
