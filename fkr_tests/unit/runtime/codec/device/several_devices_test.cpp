// Tests several GPUs of one process on the fake driver: they share the work, a failure of one does not change the
// bytes, and no other device touches what a device has begun.
//
// Thread timing is not deterministic: hold() makes the other devices wait where a test needs a certain device to get
// work.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/cuda/fake_cuda.hpp"
#include "fkr_tests/cases/cuda/fake_gpu.hpp"
#include "fkr_tests/cases/fake_backend.hpp"
#include "fkr_tests/cases/frames.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::codec {
namespace {

using ::testing::HasSubstr;
using ByteVector = std::vector<uint8_t>;

class SeveralDevices : public testing::FakeGpu {
 protected:
  static constexpr size_t kChunk = 65536, kChunks = 416;  // 26 pieces of 16
  static constexpr int kMostUnderWay = 4;                 // pieces that a device may have begun at a time

  ~SeveralDevices() override { state_.before_waiting = state_.before_launch = nullptr; }

  // `count` 0: all devices.
  BackendRequest request(std::string name, size_t count) {
    auto asked = testing::request_on_fake_gpu(images_, std::move(name), Policy::gpu);
    asked.devices.resize(count);
    std::iota(asked.devices.begin(), asked.devices.end(), 0);
    asked.notice = [this](const std::string& message, bool) {
      std::lock_guard lock(mutex_);
      notices_.push_back(message);
      changed_.notify_all();
    };
    return asked;
  }
  std::unique_ptr<Backend> devices(int count, const std::string& name = "cuda") {
    state_.device_count = count;
    state_.before_launch = [this](int device) {
      std::lock_guard lock(mutex_);
      ++launches_[device];
      changed_.notify_all();
    };
    return select_backend(request(name, static_cast<size_t>(count)), executor_).value();
  }
  // Makes waits for devices with is_held(device) block until is_so(device).
  using IsHeld = std::function<bool(int device)>;
  using IsSo = std::function<bool(int device)>;
  void hold(IsHeld is_held, IsSo is_so) {
    state_.before_waiting = [this, is_held = std::move(is_held), is_so = std::move(is_so)](int device) {
      if (!is_held(device)) return;
      std::unique_lock lock(mutex_);
      // A timeout, so that a failing test does not hang.
      EXPECT_TRUE(changed_.wait_for(lock, std::chrono::minutes(1), [&] { return is_so(device); }))
          << "device " << device;
    };
  }
  // Many chunks that compress quickly.
  static ByteVector mostly_zeros() {
    ByteVector bytes(kChunks * kChunk);
    const ByteVector some = testing::matchable_bytes(kChunks * 500, 1);
    for (size_t i = 0; i < kChunks; ++i) {
      std::copy_n(&some[i * 500], 500, bytes.begin() + static_cast<ptrdiff_t>(i * kChunk));
    }
    return bytes;
  }
  int all_launches() const {
    int count = 0;
    for (const auto& [device, launches] : launches_) count += launches;
    return count;
  }

  Executor executor_{2};
  testing::FakeImages images_;
  std::unique_ptr<Backend> cpu_ = make_cpu_backend(executor_);
  const ByteVector raw_ = mostly_zeros();
  const ByteVector frame_ = testing::compress_frame(*cpu_, raw_).value();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, int> launches_;  // by device
  std::vector<std::string> notices_;
};

TEST_F(SeveralDevices, TwoAndFourShareEachBatch) {
  for (const int count : {2, 4}) {
    const auto backend = devices(count);
    EXPECT_THAT(backend->description(), HasSubstr(fmt::format("{} GPUs; cuda, device 0", count)));
    EXPECT_THAT(backend->description(), HasSubstr(fmt::format("; cuda, device {}", count - 1)));
    const auto everybody = [&](int) { return launches_.size() == static_cast<size_t>(count); };
    launches_.clear();
    hold([](int) { return true; }, everybody);
    EXPECT_EQ(testing::compress_frame(*backend, raw_).value(), frame_);
    launches_.clear();
    EXPECT_EQ(testing::decompress_frame(*backend, frame_).value(), raw_);
    EXPECT_TRUE(everybody(0));
    EXPECT_TRUE(notices_.empty());
  }
}

TEST_F(SeveralDevices, ASlowOneDoesNoMoreThanItHasBegun) {
  for (const int count : {2, 4}) {
    const auto backend = devices(count);
    launches_.clear();
    EXPECT_EQ(testing::compress_frame(*backend, raw_).value(), frame_);
    const int pieces = all_launches();
    EXPECT_GE(pieces, 16);
    launches_.clear();
    // Device 0 finishes its first piece only after all pieces have begun; the others leave one piece for it.
    hold([](int) { return true; },
         [&](int device) { return device == 0 ? all_launches() == pieces : launches_[0] != 0; });
    EXPECT_EQ(testing::compress_frame(*backend, raw_).value(), frame_);
    EXPECT_EQ(all_launches(), pieces);
    EXPECT_GE(launches_[0], 1);
    EXPECT_LE(launches_[0], kMostUnderWay);
    state_.before_waiting = nullptr;
  }
}

TEST_F(SeveralDevices, TheOthersDoThePiecesOfOneThatFailsMidWay) {
  for (const int count : {2, 4}) {
    state_ = testing::FakeCuda{};
    notices_.clear();
    launches_.clear();
    const auto backend = devices(count);
    inject("cuLaunchKernel", 3, 719);
    state_.failing_device = 1;
    hold([](int device) { return device != 1; }, [&](int) { return launches_[1] >= 3; });
    EXPECT_EQ(testing::compress_frame(*backend, raw_).value(), frame_);
    ASSERT_EQ(notices_.size(), 1u);
    EXPECT_THAT(notices_[0], HasSubstr(fmt::format("continuing on {} of {} GPUs: device 1", count - 1, count)));
    EXPECT_THAT(notices_[0], HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
    const int launches = launches_[1];
    EXPECT_EQ(testing::decompress_frame(*backend, frame_).value(), raw_);
    EXPECT_EQ(launches_[1], launches);  // it gets no more pieces
    EXPECT_EQ(notices_.size(), 1u);
  }
}

TEST_F(SeveralDevices, TheOthersDoThePiecesOfOneWithoutMemory) {
  for (const int count : {2, 4}) {
    state_ = testing::FakeCuda{};
    notices_.clear();
    const auto backend = devices(count);
    state_.memory_limits[1] = 100'000;
    hold([](int device) { return device != 1; }, [&](int) { return !notices_.empty(); });
    EXPECT_EQ(testing::compress_frame(*backend, raw_).value(), frame_);
    EXPECT_EQ(testing::decompress_frame(*backend, frame_).value(), raw_);
    ASSERT_EQ(notices_.size(), 1u);
    EXPECT_THAT(notices_[0], HasSubstr(fmt::format("continuing on {} of {} GPUs: device 1", count - 1, count)));
    EXPECT_THAT(notices_[0], HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
  }
}

// Batches use memory of the first device; after its failure they use memory of another one.
TEST_F(SeveralDevices, TheFirstOneMayFailToo) {
  const auto backend = devices(3);
  inject("cuEventSynchronize", 1, 719);
  state_.failing_device = 0;
  hold([](int device) { return device != 0; }, [&](int) { return !notices_.empty(); });
  EXPECT_EQ(testing::compress_frame(*backend, raw_).value(), frame_);
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_THAT(notices_[0], HasSubstr("continuing on 2 of 3 GPUs: device 0"));
  EXPECT_TRUE(backend->host_memory(300'000'000).has_value());
  EXPECT_GT(state_.calls_of[1]["cuMemHostAlloc"], 0);
  EXPECT_EQ(testing::decompress_frame(*backend, frame_).value(), raw_);
}

// Memory page-locked by one device is page-locked for all: none copies it to staging memory.
TEST_F(SeveralDevices, AllCopyFromAndToWhereBatchesLie) {
  const auto backend = devices(2);
  const HostMemory raw = backend->host_memory(raw_.size()).value(), packed = backend->host_memory(raw_.size()).value();
  std::copy(raw_.begin(), raw_.end(), raw.bytes().begin());
  std::vector<CompressItem> items(kChunks);
  for (size_t i = 0; i < kChunks; ++i) {
    items[i].raw = raw.bytes().subspan(i * kChunk, kChunk);
    items[i].output = packed.bytes().subspan(i * kChunk, kChunk);
  }
  const long before = state_.pinned_bytes;
  hold([](int) { return true; }, [&](int) { return launches_.size() == 2; });
  ASSERT_TRUE(backend->compress(items, Encoder::reproducible));
  EXPECT_LT(state_.pinned_bytes - before, 100'000);  // sizes and flags
}

TEST_F(SeveralDevices, WhenNoneIsLeftTheCpuGoesOn) {
  inject("cuLaunchKernel", 1, 719);  // every later call of the fake driver fails likewise
  {
    const auto strict = devices(3);
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(testing::compress_frame(*strict, raw_).error().message(), HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
    }
  }
  state_.calls.clear();
  notices_.clear();
  const auto lenient = devices(3, "auto");
  EXPECT_EQ(testing::compress_frame(*lenient, raw_).value(), frame_);
  ASSERT_FALSE(notices_.empty());
  EXPECT_THAT(notices_.back(), HasSubstr("continuing on the CPU: "));
}

TEST_F(SeveralDevices, OneThatIsMissingIsAnErrorOrAWarning) {
  state_.device_count = 2;
  EXPECT_THAT(select_backend(request("cuda", 3), executor_).error().message(), HasSubstr("there is no device 2"));
  const auto lenient = select_backend(request("auto", 3), executor_).value();
  EXPECT_EQ(testing::compress_frame(*lenient, raw_).value(), frame_);
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_THAT(notices_[0], HasSubstr("using 2 of 3 GPUs: there is no device 2"));
  EXPECT_THAT(select_backend(request("cuda", 0), executor_).value()->description(),
              HasSubstr("2 GPUs; cuda, device 0"));
}

}  // namespace
}  // namespace ptxkit::codec
