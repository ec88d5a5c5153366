// The automatic policy of blocks with coders made of sleep: the stream never waits for a device, a faster one takes
// over, a slower one is left alone, and what was measured is kept.
#include "runtime/codec/policy/automatic_blocks.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/codec/format/codecs.hpp"
#include "runtime/codec/policy/block_rates.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;
using ByteVector = std::vector<uint8_t>;

constexpr size_t kBlockBytes = 1000, kBatchBlocks = 16;
constexpr uint64_t kManyBytes = 1'000'000'000'000;

// "Coded" is every byte plus one.
class SleepingCoder final : public BlockCoder {
 public:
  SleepingCoder(std::string name, microseconds of_a_block, std::atomic<size_t>& done_blocks, size_t failing_block = 0)
      : name_(std::move(name)), of_a_block_(of_a_block), done_blocks_(done_blocks), failing_block_(failing_block) {}
  std::string description() const override { return name_; }
  size_t batch_blocks(const BlockCoding&, size_t) override { return kBatchBlocks; }
  size_t blocks_in_host_memory() const override { return name_ == "cpu" ? 2 : 0; }
  bool may_use_device() const override { return name_ != "cpu"; }
  Result<void> encode(const BlockCoding&, std::span<BlockToEncode> blocks, MatchSearch) override {
    return run(blocks, [](BlockToEncode& block) {
      block.coded.assign(block.raw.begin(), block.raw.end());
      for (uint8_t& byte : block.coded) ++byte;
    });
  }
  Result<void> decode(const BlockCoding&, std::span<BlockToDecode> blocks) override {
    return run(blocks, [](BlockToDecode& block) { block.good = true; });
  }

 private:
  template <class Block, class Work>
  Result<void> run(std::span<Block> blocks, Work work) {
    std::this_thread::sleep_for(of_a_block_ * blocks.size());
    if (failing_block_ != 0 && done_blocks_ + blocks.size() >= failing_block_) return fail(name_ + " is lost");
    for (Block& block : blocks) work(block);
    done_blocks_ += blocks.size();
    return {};
  }

  std::string name_;
  microseconds of_a_block_;
  std::atomic<size_t>& done_blocks_;
  size_t failing_block_;
};

class AutomaticBlocksTest : public ::testing::Test {
 protected:
  AutomaticBlocksTest() : path_(::testing::TempDir() + "ptxkit_blocks." + std::to_string(::getpid()) + "/rates") {}
  ~AutomaticBlocksTest() override { std::filesystem::remove_all(std::filesystem::path(path_).parent_path()); }

  std::unique_ptr<BlockCoder> coder(std::function<std::unique_ptr<BlockCoder>()> open, uint64_t bytes = kManyBytes) {
    return automatic_blocks(std::make_unique<SleepingCoder>("cpu", microseconds(300), on_cpu_),
                            {.open =
                                 [this, open = std::move(open)](Executor&) {
                                   ++opened_;
                                   return open();
                                 },
                             .expected_bytes = bytes,
                             .cpu_threads = 2,
                             .rates_path = path_,
                             .sample_bytes = 4 * kBlockBytes,
                             .batch_bytes = 50 * kBlockBytes,
                             .notice =
                                 [this](const std::string& message, bool matters) {
                                   std::lock_guard lock(mutex_);
                                   notices_.push_back((matters ? "" : "-v ") + message);
                                 }});
  }
  std::unique_ptr<BlockCoder> device(microseconds of_a_block, size_t failing_block = 0) {
    return std::make_unique<SleepingCoder>("gpu", of_a_block, on_device_, failing_block);
  }
  void run_batch(BlockCoder& coder) {
    std::vector<BlockToEncode> blocks(kBatchBlocks, {raw_});
    ASSERT_TRUE(coder.encode(format::PtzCodec::lzr, blocks));
    for (const BlockToEncode& block : blocks) ASSERT_EQ(block.coded, ByteVector(kBlockBytes, 8));
  }
  // Batches until the starter has come to its end.
  void run_until_settled(BlockCoder& coder) {
    run_batch(coder);
    for (int i = 0; coder.is_starting_device() && i < 10'000; ++i) run_batch(coder);
    ASSERT_FALSE(coder.is_starting_device());
  }
  void keep(double cpu, double device, double both) {
    ASSERT_TRUE(save_block_rates({"gpu", 2, 0.1, {{"lzr compress", {cpu, device, both}}}}, path_));
  }

  const std::string path_;
  const ByteVector raw_ = ByteVector(kBlockBytes, 7);
  std::atomic<size_t> on_cpu_{0}, on_device_{0};
  std::atomic<int> opened_{0};
  std::mutex mutex_;
  std::vector<std::string> notices_;
};

TEST_F(AutomaticBlocksTest, NothingWaitsForADeviceThatIsStarting) {
  std::promise<void> go_on;
  const auto coder_of_stream = coder([this, &go_on] {
    go_on.get_future().wait();
    return device(microseconds(1));
  });
  EXPECT_FALSE(coder_of_stream->is_starting_device());
  for (int i = 0; i < 5; ++i) run_batch(*coder_of_stream);  // would hang if it waited
  EXPECT_TRUE(coder_of_stream->is_starting_device());
  EXPECT_EQ(on_cpu_, 5 * kBatchBlocks);
  EXPECT_EQ(on_device_, 0u);
  EXPECT_EQ(coder_of_stream->description(), "cpu");
  go_on.set_value();
}

TEST_F(AutomaticBlocksTest, AFasterDeviceTakesOverAndTheRatesAreKept) {
  {
    const auto faster = coder([this] { return device(microseconds(10)); });
    run_until_settled(*faster);
    EXPECT_EQ(faster->description(), "cpu; gpu");
    for (int i = 0; i < 3; ++i) run_batch(*faster);
    on_cpu_ = on_device_ = 0;
    for (int i = 0; i < 4; ++i) run_batch(*faster);
    EXPECT_GT(on_device_, on_cpu_);
  }
  EXPECT_EQ(opened_, 1);
  ASSERT_EQ(notices_.size(), 2u);
  EXPECT_EQ(notices_[0], "-v lzr compress: starting the GPU beside the CPU");
  EXPECT_THAT(notices_[1], ::testing::StartsWith("-v lzr compress on "));
  const auto kept = load_block_rates(path_).value();
  EXPECT_EQ(kept.device, "gpu");
  EXPECT_EQ(kept.cpu_threads, 2u);
  EXPECT_GT(kept.start_seconds, 0);
  const SideRates& rates = kept.rates.at("lzr compress");
  EXPECT_GT(rates[1], rates[0]);
  EXPECT_GT(rates[2], 0);
}

TEST_F(AutomaticBlocksTest, ASlowDeviceGetsNothingOfTheStream) {
  {
    const auto slow = coder([this] { return device(microseconds(20'000)); });
    run_until_settled(*slow);
    on_device_ = 0;
    for (int i = 0; i < 4; ++i) run_batch(*slow);
    EXPECT_EQ(on_device_, 0u);
  }
  EXPECT_LT(load_block_rates(path_)->rates.at("lzr compress")[1], load_block_rates(path_)->rates.at("lzr compress")[0]);
  // And is not started by the next run, which knows, and has no use for large batches.
  const auto next = coder([this] { return device(microseconds(20'000)); });
  EXPECT_EQ(next->batch_blocks(format::PtzCodec::lzr, kBlockBytes), kBatchBlocks);
  EXPECT_EQ(next->batch_blocks(format::PtzCodec::bbw, kBlockBytes), 50u);
  for (int i = 0; i < 4; ++i) run_batch(*next);
  EXPECT_EQ(opened_, 1);
}

TEST_F(AutomaticBlocksTest, FewBytesStartNothing) {
  const auto few = coder([this] { return device(microseconds(1)); }, 3 * kBatchBlocks * kBlockBytes);
  for (int i = 0; i < 3; ++i) run_batch(*few);
  EXPECT_EQ(opened_, 0);
  EXPECT_TRUE(notices_.empty());
  EXPECT_FALSE(may_be_worth_a_device(std::nullopt, 16, 300'000'000));
  EXPECT_TRUE(may_be_worth_a_device(std::nullopt, 16, 3'000'000'000));
  EXPECT_TRUE(may_be_worth_a_device(BlockRates{"gpu", 16, 0.1, {}}, 16, 300'000'000));
}

TEST_F(AutomaticBlocksTest, WhatTheLastRunKnewIsNotTriedAgain) {
  keep(1, 1e12, 2);
  const auto known = coder([this] { return device(microseconds(10)); });
  run_until_settled(*known);
  on_cpu_ = on_device_ = 0;
  run_batch(*known);
  EXPECT_EQ(on_cpu_, 0u);  // neither the CPU's nor both's
  EXPECT_EQ(on_device_, kBatchBlocks);
}

TEST_F(AutomaticBlocksTest, ADeviceThatFailsIsOneWarningAndTheCpuGoesOn) {
  for (const size_t failing_block : {1u, 5u, 13u}) {  // in the first sample, in the second, in the stream
    notices_.clear();
    on_device_ = 0;
    const auto failing = coder([this, failing_block] { return device(microseconds(10), failing_block); });
    run_until_settled(*failing);
    for (int i = 0; i < 4; ++i) run_batch(*failing);
    EXPECT_EQ(std::count(notices_.begin(), notices_.end(), "continuing on the CPU: gpu is lost"), 1);
    EXPECT_EQ(failing->description(), "cpu");
  }
  EXPECT_FALSE(load_block_rates(path_));
}

TEST_F(AutomaticBlocksTest, WithoutADeviceTheCpuDoesIt) {
  const auto none = coder([] { return nullptr; });
  run_until_settled(*none);
  for (int i = 0; i < 3; ++i) run_batch(*none);
  EXPECT_EQ(opened_, 1);
  EXPECT_EQ(none->description(), "cpu");
}

TEST_F(AutomaticBlocksTest, ARatesFileThatIsNotWholeCountsAsNone) {
  keep(1e9, 2e9, 0);
  std::string content;
  {
    std::ifstream in(path_);
    content.assign(std::istreambuf_iterator<char>(in), {});
  }
  EXPECT_EQ(load_block_rates(path_)->rates.at("lzr compress"), (SideRates{1e9, 2e9, 0}));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = content;
    return changed.replace(changed.find(from), from.size(), to);
  };
  std::vector<std::string> broken = {
      "", content + "x", with("rates 1", "rates 0"), with("2 0.1", "2 -1"), with("2e+09", "-2"), with("2e+09", "fast")};
  for (size_t length = 0; length + 4 < content.size(); length += 5) broken.push_back(content.substr(0, length));
  for (const std::string& text : broken) {
    std::ofstream(path_) << text;
    EXPECT_FALSE(load_block_rates(path_)) << text;
  }
  EXPECT_FALSE(load_block_rates(""));
  EXPECT_EQ(block_rates_path(""), "");
}

}  // namespace
}  // namespace ptxkit::codec
