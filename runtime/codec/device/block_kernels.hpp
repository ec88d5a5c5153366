// Codes the blocks of `.ptz` with kernels on Machines. The results equal those of encode_block and decode_block.
//
// Every queue works on one group of blocks at a time and begins its next group as soon as it has collected the last. A
// group has as many blocks as keep a GPU busy (a block takes one warp in LZ77 decoding and one CTA with bbw), but no
// more than fit a queue's memory: encoding takes about 27 bytes for each raw byte. A small number of blocks is split
// over all queues. Encoding waits once half-way, because only then the lengths of the streams are known.
//
// A device that fails is not used again, and the others code its blocks. The call fails if no device is left.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/device/block_pipeline.hpp"

namespace ptxkit::codec {

class BlockKernels final : public BlockCoder {
 public:
  // Receives the message that the work continues without a device that failed; called from any thread.
  using Notice = std::function<void(const std::string& message, bool matters)>;

  // `machines`: at least one; several share the blocks of a call. `executor` copies between blocks and staging memory
  // and must outlive this object.
  BlockKernels(std::vector<std::unique_ptr<Machine>> machines, Executor& executor, Notice notice = {});
  BlockKernels(std::unique_ptr<Machine> machine, Executor& executor);

  std::string description() const override;
  // Keeps every queue of every machine busy.
  size_t batch_blocks(const BlockCoding& codec, size_t raw_bytes) override;
  size_t blocks_in_host_memory() const override { return 0; }
  bool may_use_device() const override { return true; }
  Result<void> encode(const BlockCoding& codec, std::span<BlockToEncode> blocks,
                      MatchSearch search = MatchSearch::chains) override;
  Result<void> decode(const BlockCoding& codec, std::span<BlockToDecode> blocks) override;

 private:
  struct Device {
    BlockPipeline& pipeline(const BlockCoding& codec);
    size_t batch_blocks(const BlockCoding& codec, size_t raw_bytes);

    std::unique_ptr<Machine> machine;
    Executor& executor;
    std::map<BlockCoding, std::unique_ptr<BlockPipeline>> pipelines = {};
    std::optional<Error> error = {};  // of a device that has failed
  };

  // Calls work(device, part) -> Result<void> until all blocks are done; a part has as many blocks as the device takes
  // at a time.
  template <class Block, class Work>
  Result<void> on_devices(const BlockCoding& codec, std::span<Block> blocks, size_t raw_bytes, const Work& work);

  void failed(Device& device, Error error) noexcept;

  std::vector<Device> devices_;
  Notice notice_;
};

}  // namespace ptxkit::codec
