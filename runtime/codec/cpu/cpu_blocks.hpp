// Codes blocks on the threads of an executor; Zstandard by libzstd, gzip by libdeflate.
#pragma once

#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/cpu/deflate_coder.hpp"
#include "runtime/codec/cpu/zstd_coder.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::codec {

class CpuBlocks final : public BlockCoder {
 public:
  // `executor` must outlive this.
  explicit CpuBlocks(Executor& executor) : executor_(executor), zstd_(executor), deflate_(executor) {}

  std::string description() const override;
  size_t batch_blocks(const BlockCoding& codec, size_t raw_bytes) override;
  size_t blocks_in_host_memory() const override { return executor_.thread_count(); }
  bool may_use_device() const override { return false; }
  Result<void> encode(const BlockCoding& codec, std::span<BlockToEncode> blocks, MatchSearch search) override;
  Result<void> decode(const BlockCoding& codec, std::span<BlockToDecode> blocks) override;

 private:
  Executor& executor_;
  ZstdCoder zstd_;
  DeflateCoder deflate_;
};

}  // namespace ptxkit::codec
