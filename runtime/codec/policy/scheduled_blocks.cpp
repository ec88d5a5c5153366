#include "runtime/codec/policy/scheduled_blocks.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

class ScheduledBlocks final : public BlockCoder {
 public:
  ScheduledBlocks(std::unique_ptr<BlockCoder> device, std::unique_ptr<BlockCoder> cpu, Sharing sharing,
                  FallbackNotice notice)
      : device_(std::move(device)), cpu_(std::move(cpu)), sharing_(sharing), work_(std::move(notice)) {}

  std::string description() const override {
    if (work_.has_failed()) return cpu_->description();
    if (sharing_ == Sharing::device_only) return device_->description();
    return fmt::format("{}; with {}", device_->description(), cpu_->description());
  }
  size_t batch_blocks(const BlockCoding& codec, size_t raw_bytes) override {
    return std::max(device_->batch_blocks(codec, raw_bytes), cpu_->batch_blocks(codec, raw_bytes));
  }
  // Those of the CPU, which may have to take over.
  size_t blocks_in_host_memory() const override { return cpu_->blocks_in_host_memory(); }
  bool may_use_device() const override { return true; }

  Result<void> encode(const BlockCoding& codec, std::span<BlockToEncode> blocks, MatchSearch search) override {
    return work_.run(
        sharing_, blocks, grain(codec, largest_raw_bytes(blocks), blocks.size()),
        [&](std::span<BlockToEncode> part) { return device_->encode(codec, part, search); },
        [&](std::span<BlockToEncode> part) { return cpu_->encode(codec, part, search); });
  }
  Result<void> decode(const BlockCoding& codec, std::span<BlockToDecode> blocks) override {
    return work_.run(
        sharing_, blocks, grain(codec, largest_bytes(blocks), blocks.size()),
        [&](std::span<BlockToDecode> part) { return device_->decode(codec, part); },
        [&](std::span<BlockToDecode> part) { return cpu_->decode(codec, part); });
  }

 private:
  SharedWork::Grain grain(const BlockCoding& codec, size_t raw_bytes, size_t count) {
    if (sharing_ == Sharing::device_only || work_.has_failed()) return {1, 1};
    return shared_grain(*device_, *cpu_, codec, raw_bytes, count);
  }

  std::unique_ptr<BlockCoder> device_, cpu_;
  Sharing sharing_;
  SharedWork work_;
};

}  // namespace

SharedWork::Grain shared_grain(BlockCoder& device, BlockCoder& cpu, const BlockCoding& codec, size_t raw_bytes,
                               size_t count) {
  // A submission has at least this fraction of the blocks that keep the device busy, but no more than the other
  // fraction of the batch, so that the CPU gets part of it.
  constexpr size_t kSubmissionsPerBatch = 8, kSmallestShare = 4;
  const size_t submission = device.batch_blocks(codec, raw_bytes) / kSubmissionsPerBatch;
  return {std::max<size_t>(1, std::min(submission, count / kSmallestShare)), cpu.blocks_in_host_memory()};
}

std::unique_ptr<BlockCoder> schedule(std::unique_ptr<BlockCoder> device, std::unique_ptr<BlockCoder> cpu,
                                     Sharing sharing, FallbackNotice notice) {
  return std::make_unique<ScheduledBlocks>(std::move(device), std::move(cpu), sharing, std::move(notice));
}

}  // namespace ptxkit::codec
