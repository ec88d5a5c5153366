// Tests the kernel backend on the fake GPU: it writes the same bytes as the cpu backend, makes no device-wide call and
// no allocation in steady state, and reports or survives every injected failure.
#include "runtime/codec/device/kernel_backend.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/cuda/fake_cuda.hpp"
#include "fkr_tests/cases/cuda/fake_gpu.hpp"
#include "fkr_tests/cases/fake_backend.hpp"
#include "fkr_tests/cases/frames.hpp"
#include "kernels/abi.hpp"
#include "runtime/codec/device/cuda_machine.hpp"
#include "runtime/codec/device/machine.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/driver/context.hpp"
#include "runtime/driver/driver.hpp"
#include "runtime/driver/error_catalogue.hpp"
#include "runtime/driver/launch_contract.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

using ::testing::HasSubstr;
using ByteVector = std::vector<uint8_t>;

class KernelBackend : public testing::FakeGpu {
 protected:
  BackendRequest request(std::string name) {
    BackendRequest request = testing::request_on_fake_gpu(images_, std::move(name), Policy::gpu);
    request.notice = [this](const std::string& message, bool) { notices_.push_back(message); };
    return request;
  }

  Executor executor_{2};
  testing::FakeImages images_;
  std::vector<std::string> notices_;
  std::unique_ptr<Backend> cpu_ = make_cpu_backend(executor_);
};

TEST_F(KernelBackend, GivesTheSameBytesAsTheCpu) {
  const auto cuda = select_backend(request("cuda"), executor_).value();
  EXPECT_EQ(cuda->name(), "cuda");
  EXPECT_THAT(cuda->description(), HasSubstr("Fake GPU, sm_90, driver for CUDA 12.8"));
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{5000}, size_t{3'000'001}}) {
    const ByteVector raw = testing::mixed_content(size);
    for (int size_id = 4; size_id <= 7; ++size_id) {
      const ByteVector frame = testing::compress_frame(*cuda, raw, size_id).value();
      EXPECT_EQ(frame, testing::compress_frame(*cpu_, raw, size_id).value());
      EXPECT_EQ(testing::decompress_frame(*cuda, frame).value(), raw);
    }
  }
}

TEST_F(KernelBackend, ManySlicesKeepTheirOrder) {
  // More slices than queues.
  const auto cuda = select_backend(request("cuda"), executor_).value();
  ByteVector raw = testing::matchable_bytes(1 << 20, 3);
  for (int i = 0; i < 9; ++i) raw.insert(raw.end(), raw.begin(), raw.begin() + (1 << 20));
  std::vector<ByteVector> outputs(16, ByteVector(raw.size()));
  std::vector<CompressItem> items(16);
  for (size_t i = 0; i < items.size(); ++i) {
    raw[i] = static_cast<uint8_t>(i);
    items[i].raw = Bytes(raw).first(raw.size() - i * 1000);
    items[i].output = outputs[i];
  }
  ASSERT_TRUE(cuda->compress(items, Encoder::reproducible));
  EXPECT_GE(state_.calls["cuLaunchKernel"], 5);
  std::vector<ByteVector> decoded(items.size());
  std::vector<DecompressItem> back(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    ASSERT_EQ(items[i].flag, ChunkFlag::compressed);
    decoded[i].resize(items[i].raw.size());
    back[i].block = Bytes(outputs[i]).first(items[i].compressed_bytes);
    back[i].output = decoded[i];
  }
  ASSERT_TRUE(cuda->decompress(back));
  for (size_t i = 0; i < items.size(); ++i) {
    ASSERT_EQ(back[i].status, ItemStatus::ok);
    EXPECT_TRUE(std::equal(decoded[i].begin(), decoded[i].end(), items[i].raw.begin())) << i;
  }
}

// Lists the calls that touch only one stream or one event. No other call may occur in steady state, because it would
// wait for the device: synchronising the context, querying memory, allocating, freeing, using the default stream.
TEST_F(KernelBackend, SteadyStateTouchesNothingButItsStreams) {
  const auto cuda = select_backend(request("cuda"), executor_).value();
  const ByteVector raw = testing::mixed_content(2'000'000);
  const auto cycle = [&] {
    ASSERT_TRUE(testing::decompress_frame(*cuda, testing::compress_frame(*cuda, raw).value()).has_value());
  };
  // Allocates the page-locked memory of two batches beforehand: the number that a stream allocates depends on thread
  // timing.
  {
    std::vector<HostMemory> held;
    for (int i = 0; i < 4; ++i) {
      held.push_back(cuda->host_memory(format::kHistoryBytes + cuda->preferred_batch_bytes(65536)).value());
    }
  }
  // The slices of a batch go to the queues in turn, so after a few batches every queue has seen its largest slice.
  for (int i = 0; i < 4; ++i) cycle();
  state_.calls.clear();
  state_.streams_of.clear();
  for (int i = 0; i < 4; ++i) cycle();
  const std::set<std::string> on_a_stream = {"cuCtxSetCurrent",    "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
                                             "cuMemcpy2DAsync_v2", "cuLaunchKernel",       "cuEventRecord",
                                             "cuStreamWaitEvent",  "cuEventSynchronize"};
  for (const auto& [call, count] : state_.calls) {
    EXPECT_TRUE(on_a_stream.contains(call)) << call << " was called " << count << " times";
  }
  EXPECT_EQ(state_.calls.size(), on_a_stream.size());
  // All copies up share a stream, all large copies down share another. Each queue has a stream for its kernels and for
  // the copies of sizes and flags. None of them is the default stream.
  const auto& up = state_.streams_of["cuMemcpyHtoDAsync_v2"];
  const auto& kernels = state_.streams_of["cuLaunchKernel"];
  std::set<void*> down = state_.streams_of["cuMemcpyDtoHAsync_v2"];
  down.merge(state_.streams_of["cuMemcpy2DAsync_v2, down"]);
  for (void* const stream : kernels) down.erase(stream);
  EXPECT_EQ(up.size(), 1u);
  EXPECT_EQ(down.size(), 1u);
  EXPECT_NE(up, down);
  EXPECT_FALSE(kernels.contains(*up.begin()));
  EXPECT_FALSE(up.contains(nullptr) || down.contains(nullptr) || kernels.contains(nullptr));
}

// Batches in page-locked memory, in slices of 4 chunks.
class Batches : public KernelBackend {
 protected:
  static constexpr size_t kChunk = 65536, kChunks = 16;
  struct Batch {
    HostMemory raw, output;
    std::vector<CompressItem> items;
  };
  Batches() {
    auto asked = request("cuda");
    asked.limits.slice_bytes = 4 * kChunk;
    cuda_ = select_backend(asked, executor_).value();
  }
  Batch batch(int seed, HostMemory raw, HostMemory output) {
    Batch made{std::move(raw), std::move(output), std::vector<CompressItem>(kChunks)};
    const ByteVector bytes = testing::matchable_bytes(kChunks * kChunk, seed);
    std::copy(bytes.begin(), bytes.end(), made.raw.bytes().begin());
    std::fill(made.output.bytes().begin(), made.output.bytes().end(), uint8_t{0x77});
    for (size_t i = 0; i < kChunks; ++i) {
      made.items[i].raw = made.raw.bytes().subspan(i * kChunk, kChunk);
      made.items[i].output = made.output.bytes().subspan(i * kChunk, kChunk);
    }
    return made;
  }
  Batch page_locked_batch(int seed) {
    return batch(seed, cuda_->host_memory(kChunks * kChunk).value(), cuda_->host_memory(kChunks * kChunk).value());
  }
  // The bytes of `made` compressed in items of `item_bytes`, each where it lies.
  std::vector<CompressItem> compressed_in_items(Batch& made, size_t item_bytes, size_t count) {
    std::vector<CompressItem> items(count);
    for (size_t i = 0; i < count; ++i) {
      items[i].raw = made.raw.bytes().subspan(i * item_bytes, item_bytes);
      items[i].output = made.output.bytes().subspan(i * item_bytes, item_bytes);
    }
    EXPECT_TRUE(cuda_->compress(items, Encoder::reproducible));
    return items;
  }
  void expect_as_the_cpu(const Batch& done, Encoder encoder = Encoder::reproducible) {
    Batch expected = batch(0, pageable_memory(kChunks * kChunk), pageable_memory(kChunks * kChunk));
    for (size_t i = 0; i < kChunks; ++i) expected.items[i].raw = done.items[i].raw;
    ASSERT_TRUE(cpu_->compress(expected.items, encoder));
    for (size_t i = 0; i < kChunks; ++i) {
      const auto& [item, reference] = std::pair(done.items[i], expected.items[i]);
      ASSERT_EQ(item.compressed_bytes, reference.compressed_bytes) << i;
      if (item.flag != ChunkFlag::compressed) continue;
      EXPECT_TRUE(
          std::equal(item.output.begin(), item.output.begin() + item.compressed_bytes, reference.output.begin()))
          << i;
    }
  }

  std::unique_ptr<Backend> cuda_;
};

TEST_F(Batches, TheDeviceIsBusyWhileABatchIsFinished) {
  Batch first = page_locked_batch(1), second = page_locked_batch(2);
  auto one = cuda_->begin_compress(first.items, Encoder::reproducible);
  auto two = cuda_->begin_compress(second.items, Encoder::reproducible);
  ASSERT_TRUE(one->finish());
  expect_as_the_cpu(first);
  // The fake driver executes a copy when a call waits for it: these copies were submitted, and nothing has waited for
  // them.
  EXPECT_EQ(state_.calls["cuLaunchKernel"], 8);
  EXPECT_EQ(second.items.back().compressed_bytes, 0u);
  EXPECT_EQ(second.items.back().output.front(), 0x77);
  ASSERT_TRUE(two->finish());
  expect_as_the_cpu(second);
}

// Jobs that share a device must not serialise on it.
TEST_F(Batches, WhileOneThreadWaitsForTheDeviceAnotherGivesItWork) {
  Batch first = page_locked_batch(1), second = page_locked_batch(2);
  auto one = cuda_->begin_compress(first.items, Encoder::reproducible);
  std::promise<void> waits, gave_work;
  std::atomic<bool> is_first{true};
  std::future_status in_time = std::future_status::timeout;
  state_.before_waiting = [&](int) {
    if (!is_first.exchange(false)) return;
    waits.set_value();
    // A timeout, so that a failing test does not hang.
    in_time = gave_work.get_future().wait_for(std::chrono::minutes(1));
  };
  std::thread finishing([&] { EXPECT_TRUE(one->finish()); });
  waits.get_future().wait();
  const auto slice = std::span(second.items).first(4);
  auto two = cuda_->begin_compress(slice, Encoder::reproducible);
  gave_work.set_value();
  finishing.join();
  EXPECT_EQ(in_time, std::future_status::ready);
  expect_as_the_cpu(first);
  ASSERT_TRUE(two->finish());
  ASSERT_TRUE(cuda_->compress(std::span(second.items).subspan(4), Encoder::reproducible));
  expect_as_the_cpu(second);
}

// When a batch of several threads meets a dead device, every thread gets an error and none hangs.
TEST_F(Batches, OfManyThreadsAllEndWhenTheDeviceIsLost) {
  std::vector<Batch> batches;
  for (int i = 0; i < 12; ++i) batches.push_back(page_locked_batch(i));
  inject("cuEventSynchronize", 17, 719);
  std::vector<std::thread> jobs;
  std::atomic<int> failures{0};
  for (Batch& batch : batches) {
    jobs.emplace_back([&] {
      const auto done = cuda_->compress(batch.items, Encoder::reproducible);
      if (done) return expect_as_the_cpu(batch);
      EXPECT_THAT(done.error().message(), HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
      ++failures;
    });
  }
  for (std::thread& job : jobs) job.join();
  EXPECT_GT(failures, 0);
  EXPECT_THAT(cuda_->compress(batches[0].items, Encoder::reproducible).error().message(),
              HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
}

TEST_F(Batches, OfHighRatioHaveTheBytesOfTheCpu) {
  Batch made = page_locked_batch(3);
  ASSERT_TRUE(cuda_->compress(made.items, Encoder::high));
  expect_as_the_cpu(made, Encoder::high);
}

TEST_F(Batches, PageLockedItemsAreCopiedFromAndToWhereTheyLie) {
  const auto pinned_bytes_after = [&](Batch batch) {
    const long before = state_.pinned_bytes;
    EXPECT_TRUE(cuda_->compress(batch.items, Encoder::reproducible));
    expect_as_the_cpu(batch);
    return state_.pinned_bytes - before;
  };
  const long small = pinned_bytes_after(page_locked_batch(1));
  EXPECT_LT(small, 10'000);  // sizes and flags
  EXPECT_GE(pinned_bytes_after(batch(1, pageable_memory(kChunks * kChunk), pageable_memory(kChunks * kChunk))),
            long{2 * 4 * 4 * kChunk} - small);
}

// Blocks between which other bytes lie, and outputs with gaps, as a frame and its stored blocks leave them.
TEST_F(Batches, BlocksAndOutputsWithGapsAreCopiedFromAndToWhereTheyLie) {
  Batch packed = page_locked_batch(4);
  ASSERT_TRUE(cuda_->compress(packed.items, Encoder::reproducible));
  HostMemory frame = cuda_->host_memory(kChunks * kChunk).value();
  std::vector<Bytes> blocks;
  for (size_t at = 0; const CompressItem& item : packed.items) {
    at += 4;  // the size of a block
    std::copy_n(item.output.begin(), item.compressed_bytes, frame.bytes().begin() + at);
    blocks.push_back(frame.bytes().subspan(at, item.compressed_bytes));
    at += item.compressed_bytes;
  }
  const auto decompress = [&](HostMemory room, size_t left_out) {
    std::fill(room.bytes().begin(), room.bytes().end(), uint8_t{0x77});
    std::vector<DecompressItem> items;
    for (size_t i = 0; i < kChunks; ++i) {
      if (i == left_out) continue;
      DecompressItem& item = items.emplace_back();
      item.block = blocks[i];
      item.output = room.bytes().subspan(i * kChunk, kChunk);
    }
    const long before = state_.pinned_bytes;
    EXPECT_TRUE(cuda_->decompress(items));
    for (size_t i = 0; i < kChunks; ++i) {
      const auto output = room.bytes().subspan(i * kChunk, kChunk);
      if (i == left_out) {
        EXPECT_TRUE(std::all_of(output.begin(), output.end(), [](uint8_t byte) { return byte == 0x77; }));
      } else {
        EXPECT_TRUE(std::equal(output.begin(), output.end(), packed.items[i].raw.begin())) << i;
      }
    }
    return state_.pinned_bytes - before;
  };
  HostMemory locked = cuda_->host_memory(kChunks * kChunk).value();
  EXPECT_LT(decompress(locked, 6), 10'000);  // offsets, sizes and statuses
  EXPECT_GE(decompress(pageable_memory(kChunks * kChunk), 6), long{3 * kChunk});
}

// As zero pages leave them, which are no blocks.
TEST_F(Batches, OutputsInManyRunsAreWrittenByAKernel) {
  constexpr size_t kItem = 16'384, kItems = 24;
  Batch made = page_locked_batch(4);
  const std::vector<CompressItem> there = compressed_in_items(made, kItem, kItems);
  HostMemory frame = cuda_->host_memory(kItems * kItem).value();
  HostMemory room = cuda_->host_memory(kItems * kItem + 16).value();
  const auto staged_bytes = [&](size_t shift) {
    std::fill(room.bytes().begin(), room.bytes().end(), uint8_t{0x77});
    std::vector<DecompressItem> items;
    MutableBytes left = frame.bytes();
    for (size_t i = 0; i < kItems; ++i) {
      if (i % 3 == 2) continue;
      DecompressItem& item = items.emplace_back();
      std::copy_n(there[i].output.begin(), there[i].compressed_bytes, left.begin());
      item.block = left.first(there[i].compressed_bytes);
      left = left.subspan(there[i].compressed_bytes);
      item.output = room.bytes().subspan(shift + i * kItem, kItem);
    }
    const long pinned_before = state_.pinned_bytes;
    EXPECT_TRUE(cuda_->decompress(items));
    for (size_t i = 0; i < kItems; ++i) {
      const auto output = room.bytes().subspan(shift + i * kItem, kItem);
      if (i % 3 != 2) {
        EXPECT_TRUE(std::equal(output.begin(), output.end(), there[i].raw.begin())) << i;
      } else {
        EXPECT_TRUE(std::all_of(output.begin(), output.end(), [](uint8_t byte) { return byte == 0x77; })) << i;
      }
    }
    return state_.pinned_bytes - pinned_before;
  };
  const size_t downloaded_before = state_.downloaded_bytes;
  EXPECT_LT(staged_bytes(0), 10'000);  // offsets, sizes and statuses
  EXPECT_LT(state_.downloaded_bytes - downloaded_before, 10'000u);
  // The kernel's vectors would be misaligned.
  EXPECT_GE(staged_bytes(1), long{kItem});
}

// Blocks at the places where a compression with room for the worst case leaves them.
TEST_F(Batches, BlocksInSlotsAreCopiedUpAsFarAsTheyAreUsed) {
  constexpr size_t kSlot = kChunk + kChunk / 255 + 16;
  Batch packed = page_locked_batch(4);
  ASSERT_TRUE(cuda_->compress(packed.items, Encoder::reproducible));
  HostMemory slots = cuda_->host_memory(kChunks * kSlot).value(), room = cuda_->host_memory(kChunks * kChunk).value();
  std::vector<DecompressItem> items;
  size_t used = 0;
  for (size_t i = 0; i < kChunks; ++i) {
    const CompressItem& from = packed.items[i];
    std::copy_n(from.output.begin(), from.compressed_bytes, slots.bytes().begin() + i * kSlot);
    if (i == 5) continue;
    DecompressItem& item = items.emplace_back();
    item.block = slots.bytes().subspan(i * kSlot, from.compressed_bytes);
    item.output = room.bytes().subspan(i * kChunk, kChunk);
    used += from.compressed_bytes;
  }
  const long pinned_before = state_.pinned_bytes;
  const size_t uploaded_before = state_.uploaded_bytes;
  EXPECT_TRUE(cuda_->decompress(items));
  for (const DecompressItem& item : items) {
    const size_t at = static_cast<size_t>(item.output.data() - room.bytes().data());
    EXPECT_TRUE(std::equal(item.output.begin(), item.output.end(), packed.raw.bytes().begin() + at)) << at / kChunk;
  }
  EXPECT_LT(state_.pinned_bytes - pinned_before, 10'000);  // offsets, sizes and statuses
  EXPECT_LT(state_.uploaded_bytes - uploaded_before, used + used / 4);
  EXPECT_LT(state_.uploaded_bytes - uploaded_before, kChunks * kChunk * 3 / 4);
}

// As zero pages leave them in slots, which no rows fit.
TEST_F(Batches, BlocksInManyRunsAreReadByAKernel) {
  constexpr size_t kItem = 16'384, kItems = 24;
  Batch made = page_locked_batch(4);
  const std::vector<CompressItem> there = compressed_in_items(made, kItem, kItems);
  HostMemory slots = cuda_->host_memory(2 * kItems * kItem).value();
  HostMemory room = cuda_->host_memory(kItems * kItem).value();
  const auto staged_bytes = [&](size_t shift) {
    std::vector<DecompressItem> items(kItems);
    for (size_t i = 0; i < kItems; ++i) {
      const size_t slot = shift + i * 3 / 2 * kItem + (i * i % 7) * 16;
      std::copy_n(there[i].output.begin(), there[i].compressed_bytes, slots.bytes().begin() + slot);
      items[i].block = slots.bytes().subspan(slot, there[i].compressed_bytes);
      items[i].output = room.bytes().subspan(i * kItem, kItem);
    }
    const long pinned_before = state_.pinned_bytes;
    EXPECT_TRUE(cuda_->decompress(items));
    EXPECT_TRUE(std::equal(room.bytes().begin(), room.bytes().end(), made.raw.bytes().begin()));
    return state_.pinned_bytes - pinned_before;
  };
  const size_t uploaded_before = state_.uploaded_bytes;
  EXPECT_LT(staged_bytes(0), 10'000);  // offsets, sizes and statuses
  EXPECT_LT(state_.uploaded_bytes - uploaded_before, 10'000u);
  // The kernel's vectors would be misaligned.
  EXPECT_GE(staged_bytes(1), long{kItem});
}

TEST_F(Batches, OutputIsCopiedDownAsFarAsItIsUsed) {
  Batch batch = page_locked_batch(1);
  // Chunk 3 is incompressible, chunk 9 is zero.
  std::mt19937 random(1);
  for (size_t i = 0; i < kChunk; ++i) {
    batch.raw.bytes()[3 * kChunk + i] = static_cast<uint8_t>(random());
    batch.raw.bytes()[9 * kChunk + i] = 0;
  }
  ASSERT_TRUE(cuda_->compress(batch.items, Encoder::reproducible));
  expect_as_the_cpu(batch);
  ASSERT_EQ(batch.items[3].flag, ChunkFlag::incompressible);
  ASSERT_EQ(batch.items[9].flag, ChunkFlag::zero);
  size_t used = 0;
  for (const CompressItem& item : batch.items) {
    if (item.flag == ChunkFlag::compressed) used += item.compressed_bytes;
  }
  EXPECT_GE(state_.downloaded_bytes, used);
  EXPECT_LT(state_.downloaded_bytes, used + kChunks * 5 + 4 * 3 * kChunk / 4);
  EXPECT_LT(state_.downloaded_bytes, kChunks * kChunk * 3 / 4);
}

// Bytes after an item's room are not written, even if they are page-locked, too.
TEST_F(Batches, NothingBehindTheItemsIsWritten) {
  for (const size_t last_bytes : {size_t{1}, size_t{5000}, size_t{65535}, kChunk}) {
    Batch batch = page_locked_batch(3);
    batch.items.back().raw = batch.items.back().raw.first(last_bytes);
    batch.items.back().output = batch.items.back().output.first(last_bytes);
    ASSERT_TRUE(cuda_->compress(batch.items, Encoder::reproducible));
    expect_as_the_cpu(batch);
    const auto behind = batch.output.bytes().subspan((kChunks - 1) * kChunk + last_bytes);
    EXPECT_TRUE(std::all_of(behind.begin(), behind.end(), [](uint8_t byte) { return byte == 0x77; })) << last_bytes;
  }
}

// The kernels between begin_chain and end_chain form one graph.
class Chains : public KernelBackend {
 protected:
  static constexpr size_t kBytes = 4096;
  std::unique_ptr<Machine> machine() {
    return make_cuda_machine(context(),
                             [this](std::string_view kernel, uint32_t, uint32_t) { return images_.find(kernel); },
                             {.queue_count = 1})
        .value();
  }
  // Compresses and decompresses a page in one submission.
  Result<ByteVector> there_and_back(Machine& machine, const ByteVector& raw, bool twice = false) {
    const Region regions[] = {{"raw", kBytes}, {"raw size", 4}, {"packed", kBytes}, {"packed size", 4},
                              {"flag", 1},     {"offset", 8},   {"output", kBytes}, {"room", 4},
                              {"size", 4},     {"status", 4}};
    for (const auto kernel : {kernels::kLz4CompressPage, kernels::kLz4Decompress}) {
      if (auto ready = machine.prepare(kernel); !ready) return tl::unexpected(ready.error());
    }
    if (auto arranged = machine.arrange(0, regions); !arranged) return tl::unexpected(arranged.error());
    std::copy(raw.begin(), raw.end(), machine.host(0, 0).begin());
    const auto set = [&](size_t region, uint32_t value) {
      std::memset(machine.host(0, region).data(), 0, regions[region].size_bytes);
      std::memcpy(machine.host(0, region).data(), &value, 4);
    };
    set(1, kBytes);
    set(5, 0);
    set(7, kBytes);
    for (const size_t region : {0u, 1u, 5u, 7u}) {
      if (auto copied = machine.upload(0, region); !copied) return tl::unexpected(copied.error());
    }
    const auto at = [&](size_t region) { return driver::LaunchArgument::of_address(machine.address(0, region)); };
    const auto number = [](uint32_t value) { return driver::LaunchArgument::of(value); };
    const auto stride = number(kBytes / kernels::kStrideUnitBytes);
    const driver::LaunchArgument pack[] = {at(0), at(1), at(2), at(3), at(4), stride, stride, number(1)};
    const driver::LaunchArgument unpack[] = {at(2), at(5), at(3), at(6), at(5), at(7), at(8), at(9), number(1)};
    if (auto begun = machine.begin_chain(0); !begun) return tl::unexpected(begun.error());
    Result<void> done;
    for (int i = 0; done && i < (twice ? 2 : 1); ++i) {
      done = machine.launch(0, kernels::kLz4CompressPage, 1, kernels::kLz4CompressPageShape.block_threads, pack);
      if (!done) break;
      done = machine.launch(0, kernels::kLz4Decompress, 1, kernels::kLz4DecompressShape.block_threads, unpack);
    }
    if (done) done = machine.end_chain(0);
    if (done) done = machine.download(0, 6);
    const auto waited = machine.wait(0);
    if (!done || !waited) return tl::unexpected((done ? waited : done).error());
    return ByteVector(machine.host(0, 6).begin(), machine.host(0, 6).end());
  }
};

TEST_F(Chains, AreOneSubmission) {
  const auto cuda = machine();
  for (int i = 0; i < 3; ++i) {
    const ByteVector raw = testing::matchable_bytes(kBytes, i);
    EXPECT_EQ(there_and_back(*cuda, raw).value(), raw);
    EXPECT_EQ(state_.calls["cuGraphLaunch"], i + 1);
  }
  // The graph is instantiated once and updated for later chains. A chain of other kernels gets a new graph without an
  // attempt to update.
  EXPECT_EQ(state_.calls["cuGraphInstantiateWithFlags"], 1);
  EXPECT_EQ(state_.calls["cuGraphExecUpdate"], 2);
  const ByteVector raw = testing::matchable_bytes(kBytes, 9);
  EXPECT_EQ(there_and_back(*cuda, raw, true).value(), raw);
  EXPECT_EQ(state_.calls["cuGraphInstantiateWithFlags"], 2);
  EXPECT_EQ(state_.calls["cuGraphExecUpdate"], 2);
  EXPECT_EQ(state_.graphs, 1);
}

TEST_F(Chains, EndWithTheErrorOfAnyCallAndTheNextOneIsWhole) {
  for (const char* const call : {"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags",
                                 "cuGraphLaunch", "cuLaunchKernel"}) {
    state_ = testing::FakeCuda{};
    inject(call, 1, 2);
    const auto cuda = machine();
    const ByteVector raw = testing::matchable_bytes(kBytes, 1);
    const auto failed = there_and_back(*cuda, raw);
    ASSERT_FALSE(failed) << call;
    EXPECT_THAT(failed.error().message(), HasSubstr("CUDA_ERROR_OUT_OF_MEMORY")) << call;
    EXPECT_EQ(there_and_back(*cuda, raw).value(), raw) << call;
  }
}

TEST_F(Chains, AreSingleLaunchesWhereTheDriverHasNoGraphs) {
  auto driver = driver::Driver::open(FAKE_CUDA).value();
  const_cast<driver::Api&>(driver->api()).graph_launch = nullptr;
  const auto cuda =
      make_cuda_machine(driver::Context::create(driver, 0).value(),
                        [this](std::string_view kernel, uint32_t, uint32_t) { return images_.find(kernel); }, {})
          .value();
  const ByteVector raw = testing::matchable_bytes(kBytes, 1);
  EXPECT_EQ(there_and_back(*cuda, raw).value(), raw);
  EXPECT_EQ(state_.calls["cuLaunchKernel"], 2);
  EXPECT_EQ(state_.calls["cuStreamBeginCapture_v2"], 0);
}

// Copies parts of regions from and to memory that is not page-locked.
TEST_F(Chains, PartsOfRegionsComeAndGo) {
  const auto cuda = machine();
  const Region regions[] = {{"first", 1000, nullptr, true}, {"second", 1000, nullptr, true}};
  ASSERT_TRUE(cuda->arrange(0, regions));
  const ByteVector one(10, 1), two(20, 2);
  const PartUp up[] = {{0, 100, one}, {1, 980, two}};
  ASSERT_TRUE(cuda->clear(0, 0));
  ASSERT_TRUE(cuda->clear(0, 1));
  ASSERT_TRUE(cuda->upload_parts(0, up));
  ByteVector first(1000, 9), second(30, 9);
  const PartDown down[] = {{0, 0, first}, {1, 970, second}};
  ASSERT_TRUE(cuda->download_parts(0, down));
  ASSERT_TRUE(cuda->wait(0));
  ByteVector expected(1000);
  std::fill_n(expected.begin() + 100, 10, uint8_t{1});
  EXPECT_EQ(first, expected);
  EXPECT_EQ(ByteVector(second.begin(), second.begin() + 10), ByteVector(10));
  EXPECT_EQ(ByteVector(second.begin() + 10, second.end()), two);
  for (const char* const call : {"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemsetD8Async"}) {
    state_.calls.clear();
    inject(call, 1, 2);
    const auto failed = cuda->clear(0, 0).and_then([&] { return cuda->upload_parts(0, up); }).and_then([&] {
      return cuda->download_parts(0, down);
    });
    ASSERT_FALSE(failed) << call;
    EXPECT_THAT(failed.error().message(), HasSubstr("CUDA_ERROR_OUT_OF_MEMORY")) << call;
    ASSERT_TRUE(cuda->wait(0));
  }
}

TEST_F(KernelBackend, BadBlocksHaveTheirStatusFromTheKernel) {
  const auto cuda = select_backend(request("cuda"), executor_).value();
  const ByteVector good = {0x10, 'x'}, offset_zero = {0x10, 'x', 0, 0, 0x50, 1, 2, 3, 4, 5};
  ByteVector room[2] = {ByteVector(9), ByteVector(99)};
  std::vector<DecompressItem> items(2);
  items[0].block = good;
  items[1].block = offset_zero;
  for (int i = 0; i < 2; ++i) items[i].output = room[i];
  ASSERT_TRUE(cuda->decompress(items));
  EXPECT_EQ(items[0].status, ItemStatus::ok);
  EXPECT_EQ(room[0][0], 'x');
  EXPECT_EQ(items[1].status, ItemStatus::offset_zero);
}

TEST_F(KernelBackend, WhatItLacksItRefuses) {
  const auto cuda = select_backend(request("cuda"), executor_).value();
  ByteVector raw(100, 'x'), out(100);
  CompressItem item;
  item.raw = raw;
  item.output = out;
  EXPECT_THAT(cuda->compress({&item, 1}, Encoder::fast).error().what,
              HasSubstr("the cuda backend lacks the fast encoder"));
  item.history = raw;
  EXPECT_THAT(cuda->compress({&item, 1}, Encoder::reproducible).error().what,
              HasSubstr("lacks compression of linked blocks"));
  DecompressItem back;
  back.block = back.history = raw;
  back.output = out;
  EXPECT_THAT(cuda->decompress({&back, 1}).error().what, HasSubstr("lacks decompression of linked blocks"));
}

TEST_F(KernelBackend, EveryInjectedFailureIsAnErrorForCudaAndAFallbackForAuto) {
  const ByteVector raw = testing::mixed_content(300'000);
  const ByteVector frame = testing::compress_frame(*cpu_, raw).value();
  for (const auto& [function, code] :
       {std::pair("cuEventSynchronize", 716), std::pair("cuEventSynchronize", 700), std::pair("cuLaunchKernel", 719),
        std::pair("cuLaunchKernel", 701), std::pair("cuMemAlloc_v2", 2), std::pair("cuMemHostAlloc", 2),
        std::pair("cuModuleLoadDataEx", 218), std::pair("cuModuleGetFunction", 500),
        std::pair("cuMemcpyHtoDAsync_v2", 999), std::pair("cuMemcpyDtoHAsync_v2", 700)}) {
    state_ = testing::FakeCuda{};
    inject(function, 1, code);
    {
      const auto cuda = select_backend(request("cuda"), executor_).value();
      const auto failed = testing::compress_frame(*cuda, raw);
      ASSERT_FALSE(failed.has_value()) << function;
      EXPECT_THAT(failed.error().message(), HasSubstr(std::string(driver::explain(code).name))) << function;
    }
    state_.calls.clear();
    notices_.clear();
    const auto lenient = select_backend(request("auto"), executor_).value();
    EXPECT_EQ(testing::compress_frame(*lenient, raw).value(), frame) << function;
    EXPECT_EQ(testing::decompress_frame(*lenient, frame).value(), raw) << function;
    ASSERT_EQ(notices_.size(), 1u) << function;
    EXPECT_THAT(notices_[0], HasSubstr("continuing on the CPU: "));
  }
}

TEST_F(KernelBackend, AutoWithoutAGpuUsesTheCpuAndSaysWhy) {
  for (const auto& [version, devices, expected] :
       {std::tuple(10020, 1, "too old"), std::tuple(12080, 0, "CUDA_ERROR_NO_DEVICE")}) {
    state_ = testing::FakeCuda{};
    state_.driver_version = version;
    state_.device_count = devices;
    notices_.clear();
    EXPECT_EQ(select_backend(request("auto"), executor_).value()->name(), "cpu");
    ASSERT_EQ(notices_.size(), 1u);
    EXPECT_THAT(notices_[0], HasSubstr(expected));
    EXPECT_THAT(select_backend(request("cuda"), executor_).error().message(), HasSubstr(expected));
  }
}

TEST_F(KernelBackend, AnImageWithoutAVerdictNeverRuns) {
  images_.find(kernels::kLz4CompressChunk)->verdict.reset();
  const auto cuda = select_backend(request("cuda"), executor_).value();
  EXPECT_THAT(testing::compress_frame(*cuda, testing::mixed_content(100'000)).error().message(),
              HasSubstr("expected a verdict of the analyzer"));
  EXPECT_EQ(state_.calls["cuLaunchKernel"], 0);
  auto missing = request("cuda");
  missing.find_image = [](std::string_view, uint32_t, uint32_t) { return nullptr; };
  EXPECT_THAT(testing::compress_frame(*select_backend(missing, executor_).value(), testing::mixed_content(100'000))
                  .error()
                  .what,
              HasSubstr("there is no image of kernel lz4_compress_chunk for sm_90"));
}

}  // namespace
}  // namespace ptxkit::codec
