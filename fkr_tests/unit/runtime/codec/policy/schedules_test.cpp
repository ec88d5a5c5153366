// Thousands of random schedules of the two-sided backend: sizes, speeds, failures and lost devices vary, and the result
// always equals that of the CPU alone. Small enough to be built with ThreadSanitizer; see docs/testing.md.
#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/codecs.hpp"
#include "runtime/codec/policy/scheduled_backend.hpp"
#include "runtime/codec/policy/scheduled_blocks.hpp"
#include "runtime/codec/policy/shared_work.hpp"
#include "runtime/codec/threads/work_ranges.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

using ByteVector = std::vector<uint8_t>;

struct Behaviour {
  unsigned failing_call = 0;        // counted from 1; 0: none
  unsigned delay_microseconds = 0;  // of a call
  bool half_done = false;           // a failing call has written garbage to half of its items
  // Device and CPU wait here before either works on the first item of a batch, so that both get some, however the
  // threads are scheduled.
  std::barrier<>* meeting = nullptr;
};

// With this many items both sides get some after the barrier, whichever comes first: the device takes half of them, but
// at least 64.
constexpr size_t kItemsForBoth = 65;

// A trivial "compression" that is easy to verify: every byte plus one. Counts the items.
class ToyBackend final : public Backend {
 public:
  ToyBackend(std::string_view name, Behaviour behaviour, std::atomic<size_t>& done_items)
      : name_(name), behaviour_(behaviour), done_items_(done_items) {}
  std::string_view name() const override { return name_; }
  std::string description() const override { return std::string(name_); }
  bool supports(Operation operation) const override { return operation != Operation::compress_linked; }
  Encoder default_encoder() const override { return Encoder::reproducible; }
  size_t preferred_batch_bytes(size_t chunk_bytes) const override { return chunk_bytes; }

  Result<void> compress(std::span<CompressItem> items, Encoder) override {
    return run(items, [](CompressItem& item) {
      for (size_t i = 0; i < item.raw.size(); ++i) item.output[i] = static_cast<uint8_t>(item.raw[i] + 1);
      item.compressed_bytes = static_cast<uint32_t>(item.raw.size());
      item.flag = ChunkFlag::compressed;
      item.status = ItemStatus::ok;
    });
  }
  Result<void> decompress(std::span<DecompressItem> items) override {
    return run(items, [](DecompressItem& item) {
      // An odd first byte stands for a corrupt block: an error of the item, which no fallback repairs.
      item.status = item.block[0] % 2 == 1 ? ItemStatus::malformed : ItemStatus::ok;
      item.raw_bytes = item.status == ItemStatus::ok ? 1 : 0;
      item.output[0] = static_cast<uint8_t>(item.block[0] + 2);
    });
  }

 private:
  template <class Item, class Work>
  Result<void> run(std::span<Item> items, Work work) {
    if (is_to_meet_ && behaviour_.meeting != nullptr) behaviour_.meeting->arrive_and_wait();
    is_to_meet_ = false;
    if (behaviour_.delay_microseconds != 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(behaviour_.delay_microseconds));
    }
    if (++calls_ == behaviour_.failing_call) {
      for (size_t i = 0; behaviour_.half_done && i < items.size() / 2; ++i) {
        items[i].output[0] = 0xee;
        items[i].status = ItemStatus::unsupported;
      }
      return fail(std::string(name_) + " is lost");
    }
    for (Item& item : items) work(item);
    done_items_ += items.size();
    return {};
  }

  std::string_view name_;
  Behaviour behaviour_;
  std::atomic<size_t>& done_items_;
  unsigned calls_ = 0;
  bool is_to_meet_ = true;
};

class Schedules : public ::testing::Test {
 protected:
  std::unique_ptr<Backend> both(Behaviour device, Behaviour cpu, Sharing sharing) {
    return schedule(std::make_unique<ToyBackend>("device", device, on_device_),
                    std::make_unique<ToyBackend>("cpu", cpu, on_cpu_), sharing,
                    [this](const std::string& message, bool matters) {
                      EXPECT_EQ(message, "continuing on the CPU: device is lost");
                      EXPECT_TRUE(matters);
                      ++notices_;
                    });
  }
  Behaviour random_behaviour(unsigned failing_call) {
    return {failing_call, random() % 3 == 0 ? random() % 40 : 0, random() % 2 == 0};
  }
  unsigned random() { return static_cast<unsigned>(generator_()); }

  std::minstd_rand generator_{20261121};
  std::atomic<size_t> on_device_{0}, on_cpu_{0};
  std::atomic<int> notices_{0};
};

TEST_F(Schedules, ThousandsOfThemGiveWhatTheCpuGives) {
  int failures = 0, certain_failures = 0, meetings = 0;
  for (int round = 0; round < 2000; ++round) {
    const Sharing sharing = random() % 4 == 0 ? Sharing::device_only : Sharing::both;
    const unsigned failing_call = random() % 3 == 0 ? 1 + random() % 5 : 0;
    notices_ = 0;
    Behaviour device = random_behaviour(failing_call), cpu = random_behaviour(0);
    const bool is_meeting = sharing == Sharing::both && random() % 2 == 0;
    std::barrier<> meeting(2);
    if (is_meeting) device.meeting = cpu.meeting = &meeting;
    const auto backend = both(device, cpu, sharing);
    for (unsigned batch = 0; batch < 1 + random() % 3; ++batch) {
      const bool meets = is_meeting && batch == 0;
      const size_t count = meets ? kItemsForBoth + random() % 700 : random() % 5 == 0 ? random() % 20 : random() % 700;
      ByteVector raw(count), output(count, 0xcc);
      std::vector<CompressItem> items(count);
      for (size_t i = 0; i < count; ++i) {
        raw[i] = static_cast<uint8_t>(random());
        items[i].raw = Bytes(raw).subspan(i, 1);
        items[i].output = MutableBytes(output).subspan(i, 1);
      }
      on_cpu_ = on_device_ = 0;
      ASSERT_TRUE(backend->compress(items, Encoder::reproducible));
      if (meets && failing_call != 1) {
        EXPECT_TRUE(on_cpu_ != 0 && on_device_ != 0);
        ++meetings;
      }
      EXPECT_EQ(on_cpu_ + on_device_, count) << "every item once";
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(output[i], static_cast<uint8_t>(raw[i] + 1));
        ASSERT_EQ(items[i].status, ItemStatus::ok);
      }
      std::vector<DecompressItem> back(count);
      for (size_t i = 0; i < count; ++i) {
        back[i].block = Bytes(raw).subspan(i, 1);
        back[i].output = MutableBytes(output).subspan(i, 1);
      }
      ASSERT_TRUE(backend->decompress(back));
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(back[i].status, raw[i] % 2 == 1 ? ItemStatus::malformed : ItemStatus::ok);
      }
    }
    EXPECT_LE(notices_, 1);
    failures += notices_;
    certain_failures += failing_call == 1 && (is_meeting || sharing == Sharing::device_only);
    EXPECT_EQ(backend->name(), notices_ != 0 ? "cpu" : "device");
  }
  EXPECT_GE(failures, certain_failures);
  EXPECT_GT(certain_failures, 50);
  EXPECT_GT(meetings, 500);
}

TEST_F(Schedules, WhenTheCpuFailsTooTheErrorIsItsOwnAndNothingHangs) {
  for (int round = 0; round < 500; ++round) {
    const auto backend = both(random_behaviour(random() % 4), random_behaviour(1 + random() % 3), Sharing::both);
    ByteVector raw(900, 1), output(900);
    std::vector<CompressItem> items(900);
    for (size_t i = 0; i < items.size(); ++i) {
      items[i].raw = Bytes(raw).subspan(i, 1);
      items[i].output = MutableBytes(output).subspan(i, 1);
    }
    const auto done = backend->compress(items, Encoder::reproducible);
    // The device may have been quick enough to leave nothing for the CPU.
    if (!done) {
      EXPECT_EQ(done.error().what, "cpu is lost");
    }
  }
}

// Blocks: "coded" is every byte plus one, and a decoded block is good where its first byte is even.
class ToyBlocks final : public BlockCoder {
 public:
  ToyBlocks(std::string_view name, Behaviour behaviour, std::atomic<size_t>& done_blocks)
      : name_(name), behaviour_(behaviour), done_blocks_(done_blocks) {}
  std::string description() const override { return std::string(name_); }
  size_t batch_blocks(const BlockCoding&, size_t) override { return 64; }
  size_t blocks_in_host_memory() const override { return name_ == "cpu" ? 4 : 0; }
  bool may_use_device() const override { return name_ != "cpu"; }
  Result<void> encode(const BlockCoding&, std::span<BlockToEncode> blocks, MatchSearch) override {
    return run(blocks, [](BlockToEncode& block) {
      for (const uint8_t byte : block.raw) block.coded.push_back(static_cast<uint8_t>(byte + 1));
    });
  }
  Result<void> decode(const BlockCoding&, std::span<BlockToDecode> blocks) override {
    return run(blocks, [](BlockToDecode& block) { block.good = block.coded[0] % 2 == 0; });
  }

 private:
  template <class Block, class Work>
  Result<void> run(std::span<Block> blocks, Work work) {
    if (auto* const meeting = std::exchange(behaviour_.meeting, nullptr)) meeting->arrive_and_wait();
    if (behaviour_.delay_microseconds != 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(behaviour_.delay_microseconds));
    }
    if (++calls_ == behaviour_.failing_call) return fail(std::string(name_) + " is lost");
    for (Block& block : blocks) work(block);
    done_blocks_ += blocks.size();
    return {};
  }

  std::string_view name_;
  Behaviour behaviour_;
  std::atomic<size_t>& done_blocks_;
  unsigned calls_ = 0;
};

TEST_F(Schedules, OfBlocksGiveWhatTheCpuGives) {
  int failures = 0, meetings = 0;
  for (int round = 0; round < 200; ++round) {
    const Sharing sharing = random() % 4 == 0 ? Sharing::device_only : Sharing::both;
    const unsigned failing_call = random() % 3 == 0 ? 1 + random() % 3 : 0;
    notices_ = 0;
    Behaviour device = random_behaviour(failing_call), cpu = random_behaviour(0);
    const bool is_meeting = sharing == Sharing::both && random() % 2 == 0;
    std::barrier<> meeting(2);
    if (is_meeting) device.meeting = cpu.meeting = &meeting;
    const auto coder =
        schedule(std::make_unique<ToyBlocks>("device", device, on_device_),
                 std::make_unique<ToyBlocks>("cpu", cpu, on_cpu_), sharing, [this](const std::string& message, bool) {
                   EXPECT_EQ(message, "continuing on the CPU: device is lost");
                   ++notices_;
                 });
    EXPECT_EQ(coder->blocks_in_host_memory(), 4u);
    EXPECT_TRUE(coder->may_use_device());
    for (unsigned batch = 0; batch < 1 + random() % 3; ++batch) {
      ByteVector raw(is_meeting && batch == 0 ? 20 + random() % 200 : random() % 300);
      for (uint8_t& byte : raw) byte = static_cast<uint8_t>(random());
      std::vector<BlockToEncode> to_encode;
      std::vector<BlockToDecode> to_decode;
      for (size_t i = 0; i < raw.size(); ++i) {
        to_encode.push_back({Bytes(raw).subspan(i, 1)});
        to_decode.push_back({Bytes(raw).subspan(i, 1), MutableBytes(raw).subspan(i, 1)});
      }
      on_cpu_ = on_device_ = 0;
      const bool was_lost = notices_ != 0;
      ASSERT_TRUE(coder->encode(format::PtzCodec::lzr, to_encode));
      EXPECT_EQ(on_cpu_ + on_device_, raw.size()) << "every block once";
      if (raw.size() > 4 && !was_lost && notices_ == 0) {
        EXPECT_NE(on_device_, 0u);
      }
      if (sharing == Sharing::device_only && notices_ == 0) {
        EXPECT_EQ(on_cpu_, 0u);
      }
      if (is_meeting && batch == 0 && failing_call != 1) {
        EXPECT_TRUE(on_cpu_ != 0 && on_device_ != 0);
        ++meetings;
      }
      ASSERT_TRUE(coder->decode(format::PtzCodec::lzr, to_decode));
      for (size_t i = 0; i < raw.size(); ++i) {
        ASSERT_EQ(to_encode[i].coded, ByteVector{static_cast<uint8_t>(raw[i] + 1)});
        ASSERT_EQ(to_decode[i].good, raw[i] % 2 == 0);
      }
    }
    EXPECT_LE(notices_, 1);
    failures += notices_;
    EXPECT_EQ(coder->description(), notices_ != 0 ? "cpu" : sharing == Sharing::both ? "device; with cpu" : "device");
  }
  EXPECT_GT(failures, 20);
  EXPECT_GT(meetings, 40);
}

TEST(WorkRanges, WhatADeviceGivesBackIsDoneByTheCpu) {
  scheduler::WorkRanges ranges(100);
  const auto batch = ranges.take_for_device(10);
  EXPECT_EQ(batch->begin, 50u);
  EXPECT_EQ(batch->end, 100u);
  EXPECT_EQ(ranges.take_for_cpu(70)->end, 50u);
  EXPECT_FALSE(ranges.take_for_device(10));
  std::thread device([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ranges.device_done(batch);
  });
  const auto part = ranges.take_for_cpu(70);  // waits for the device
  EXPECT_EQ(part->begin, 50u);
  EXPECT_EQ(part->end, 100u);
  EXPECT_FALSE(ranges.take_for_cpu(1));
  device.join();
  scheduler::WorkRanges small(5);
  EXPECT_EQ(small.take_for_device(10)->size(), 5u);
}

}  // namespace
}  // namespace ptxkit::codec
