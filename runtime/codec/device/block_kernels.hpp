// Codes the blocks of `.ptz` with kernels on Machines. The results equal those of encode_block and decode_block.
//
// Every queue works on one group of blocks at a time and begins its next group as soon as it has collected the last. A
// group has as many blocks as keep a GPU busy (a block takes one warp in LZ77 decoding and one CTA with bbw), but no
// more than fit a queue's memory: encoding takes about 27 bytes for each raw byte. A small number of blocks is split
// over all queues. Encoding waits once half-way, because only then the lengths of the streams are known.
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
  // `machines`: at least one; several share the blocks of a call. `executor` copies between blocks and staging memory
  // and must outlive this object.
  BlockKernels(std::vector<std::unique_ptr<Machine>> machines, Executor& executor);
  BlockKernels(std::unique_ptr<Machine> machine, Executor& executor);

  std::string description() const;
  // The number of blocks of up to `raw_bytes` bytes that keeps every queue of every machine busy, for encoding and
  // decoding.
  size_t batch_blocks(format::PtzCodec codec, size_t raw_bytes);

  // An error means that a machine failed. A damaged block is not an error: decode() sets its `good` to false.
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

  // Calls work(device, part) -> Result<void> until all blocks are done; a part has as many blocks as the device takes
  // at a time.
  template <class Block, class Work>
  Result<void> on_devices(format::PtzCodec codec, std::span<Block> blocks, size_t raw_bytes, const Work& work);

  std::vector<Device> devices_;
};

}  // namespace ptxkit::codec
