// The scheduler on a GPU: mixed output, adherence to a device budget, and whether the policy chooses the faster side.
#include <chrono>
#include <cstdio>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/frames.hpp"
#include "fkr_tests/cases/generated_source.hpp"
#include "fkr_tests/device/device.hpp"
#include "kernels/images.hpp"
#include "runtime/codec/policy/calibrate.hpp"
#include "runtime/codec/select_backend.hpp"
#include "support/plural.hpp"

namespace ptxkit::codec {
namespace {

using ByteVector = std::vector<uint8_t>;

constexpr uint64_t kMiB = 1 << 20;

class DeviceScheduling : public ::testing::Test {
 protected:
  void SetUp() override { PTXKIT_REQUIRE_DEVICE(); }

  // `devices`: empty for the device of the tests.
  std::unique_ptr<Backend> backend(std::string name, Policy policy, const CudaLimits& limits = {},
                                   std::vector<int> devices = {}) {
    BackendRequest request;
    request.name = std::move(name);
    request.policy = policy;
    request.devices = std::move(devices);
    if (request.devices.empty()) request.devices = {(*testing::device())->info().ordinal};
    request.find_image = kernels::find_kernel_image;
    request.notice = [](const std::string& message, bool) { ADD_FAILURE() << message; };
    request.copy_executor = &copies_;
    request.limits = limits;
    return select_backend(request, executor_).value();
  }

  Executor executor_, copies_{2};
  std::unique_ptr<Backend> cpu_ = make_cpu_backend(executor_);
};

TEST_F(DeviceScheduling, MixedOutputIsTheCpusBitForBit) {
  const auto mixed = backend("auto", Policy::mixed);
  for (const size_t size : {1000u, 400'000u, 20'000'000u}) {
    const ByteVector raw = testing::mixed_content(size);
    const auto frame = testing::compress_frame(*mixed, raw);
    ASSERT_TRUE(frame) << frame.error().message();
    EXPECT_TRUE(*frame == testing::compress_frame(*cpu_, raw).value()) << size;
    EXPECT_TRUE(testing::decompress_frame(*mixed, *frame).value() == raw) << size;
  }
}

// $PTXKIT_STREAM_MIB is the length in MiB if 4 GiB would take too long.
TEST_F(DeviceScheduling, FourGibibytesStayBelowADeviceBudgetOf64MiB) {
  const char* const chosen = std::getenv("PTXKIT_STREAM_MIB");
  const uint64_t length = (chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : 4096) * kMiB;
  const auto cuda = backend("cuda", Policy::gpu, {.memory_bytes = 64 * kMiB, .queue_count = 4});
  // Contexts and modules need memory of their own.
  ASSERT_TRUE(testing::compress_frame(*cuda, testing::mixed_content(200'000)));
  const uint64_t free_before = (*testing::device())->free_memory_bytes().value();
  testing::GeneratedSource source(testing::mixed_content(8 * kMiB), length);
  format::NullSink sink;
  scheduler::Ledger memory("memory", 256 * kMiB);
  format::FrameHeader header;
  header.block_size_id = 4;
  const auto totals = compress_stream(source, sink, *cuda,
                                      {.header = header,
                                       .encoder = Encoder::reproducible,
                                       .progress = {},
                                       .limits = {.memory = &memory, .prefetch = 2, .stop = {}}});
  ASSERT_TRUE(totals) << totals.error().message();
  EXPECT_EQ(totals->raw_bytes, length);
  EXPECT_LE(memory.peak_bytes(), 256 * kMiB);
  // Arenas never shrink, so the memory in use now is the peak.
  const uint64_t free_after = (*testing::device())->free_memory_bytes().value();
  EXPECT_LE(free_before - std::min(free_before, free_after), 64 * kMiB);
  std::printf("device memory taken: %.1f MiB\n", static_cast<double>(free_before - free_after) / kMiB);
}

// Charges the GPU the startup time of a process, which this one has already paid, and prints the table for docs.
TEST_F(DeviceScheduling, TheChosenSideIsWithinFivePercentOfTheBetter) {
  const char* const chosen = std::getenv("PTXKIT_STREAM_MIB");
  const uint64_t longest = (chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : 4096) * kMiB;
  const auto cuda = backend("cuda", Policy::gpu);
  ASSERT_TRUE(testing::compress_frame(*cuda, testing::mixed_content(200'000)));
  const auto rates =
      calibrate(*cpu_, *cuda, sample_lengths(*cpu_, *cuda), executor_.thread_count(), unmeasured(1).gpu_start_seconds);
  ASSERT_TRUE(rates) << rates.error().message();
  for (const auto& [name, curve] : kCurves) {
    fmt::print("{}, GB/s: cpu {:.2f}, gpu {:.2f}\n", name, (rates->cpu.*curve).rate() / 1e9,
               (rates->gpu.*curve).rate() / 1e9);
  }
  fmt::print("start {:.2f} s\n", rates->gpu_start_seconds);
  const auto seconds_of = [](Backend& backend, uint64_t length) {
    return time_compression(backend, backend.default_encoder(), length).value().seconds;
  };
  for (uint64_t length = 4096; length <= longest; length *= 4) {
    const double cpu = std::min(seconds_of(*cpu_, length), seconds_of(*cpu_, length));
    const double started = std::min(seconds_of(*cuda, length), seconds_of(*cuda, length));
    const double gpu = rates->gpu_start_seconds + started;
    const auto loss = [&](const Calibration& policy) {
      const double of_gpu = policy.gpu_start_seconds + started;
      return (policy.prefers_gpu(Work::compress, length) ? of_gpu : cpu) / std::min(cpu, of_gpu) - 1;
    };
    fmt::print(
        "{:>12} bytes: cpu {:9.6f} s (model {:9.6f}), gpu {:9.6f} s (model {:9.6f}), auto loses {:.1f} %, "
        "{:.1f} % where CUDA is started\n",
        length, cpu, rates->cpu_seconds(Work::compress, length), gpu, rates->gpu_seconds(Work::compress, length),
        100 * loss(*rates), 100 * loss(rates->once_started()));
    EXPECT_LE(loss(*rates), 0.05) << length;
  }
}

// Twenty streams that share a backend and a budget, against one with the same total. The streams are long enough to be
// worth a GPU. A warm-up pays for locking pages.
TEST_F(DeviceScheduling, TwentyJobsAreAsFastAsOne) {
  const char* const chosen = std::getenv("PTXKIT_STREAM_MIB");
  const uint64_t total = (chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : 4096) * kMiB;
  constexpr unsigned kJobs = 20;
  for (const auto& [name, policy] : {std::pair("cuda", Policy::gpu), std::pair("cpu", Policy::cpu)}) {
    const auto shared = backend(name, policy);
    const auto seconds_of = [&](unsigned job_count) {
      scheduler::Ledger memory("memory", 1024 * kMiB);
      const auto begin = std::chrono::steady_clock::now();
      std::vector<std::thread> jobs;
      for (unsigned job = 0; job < job_count; ++job) {
        jobs.emplace_back([&] {
          SampleSource source(total / job_count);
          format::NullSink sink;
          format::FrameHeader header;
          header.block_size_id = 4;
          header.content_bytes = total / job_count;
          const auto done = compress_stream(source, sink, *shared,
                                            {.header = header,
                                             .encoder = shared->default_encoder(),
                                             .progress = {},
                                             .limits = {.memory = &memory, .prefetch = 2, .stop = {}}});
          EXPECT_TRUE(done) << done.error().message();
        });
      }
      for (std::thread& job : jobs) job.join();
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    seconds_of(kJobs);
    const double one = std::min(seconds_of(1), seconds_of(1)), many = std::min(seconds_of(kJobs), seconds_of(kJobs));
    fmt::print("{}: one job {:.2f} GB/s, twenty {:.2f}\n", name, static_cast<double>(total) / one / 1e9,
               static_cast<double>(total) / many / 1e9);
    EXPECT_GE(one / many, 0.95) << name;
  }
}

// Batches in page-locked memory on one, two and all GPUs. They need no checksum and no reader, for which a stream has
// only one thread.
TEST_F(DeviceScheduling, SeveralDevicesAreFasterThanOne) {
  const int all = (*testing::device())->driver().device_count();
  if (all < 2) GTEST_SKIP() << "needs two GPUs, found " << all;
  constexpr size_t kChunk = 65536, kChunks = 16384;  // 1 GiB
  std::vector<int> devices;
  std::vector<uint32_t> sizes;
  double one = 0;
  for (const int count : std::set<int>{1, 2, all}) {
    while (std::ssize(devices) < count) devices.push_back(static_cast<int>(devices.size()));
    const auto cuda = backend("cuda", Policy::gpu, {}, devices);
    const HostMemory raw = cuda->host_memory(kChunk * kChunks).value();
    const HostMemory packed = cuda->host_memory(kChunk * kChunks).value();
    SampleSource source(kChunk * kChunks);
    ASSERT_TRUE(source.read(raw.bytes()));
    std::vector<CompressItem> items(kChunks);
    for (size_t i = 0; i < kChunks; ++i) {
      items[i].raw = raw.bytes().subspan(i * kChunk, kChunk);
      items[i].output = packed.bytes().subspan(i * kChunk, kChunk);
    }
    double seconds = 1e300;
    for (int run = 0; run < 4; ++run) {
      const auto begin = std::chrono::steady_clock::now();
      ASSERT_TRUE(cuda->compress(items, Encoder::reproducible));
      seconds = std::min(seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    fmt::print("{}: {:.1f} GB/s from page-locked memory to page-locked memory\n", plural(count, "GPU"),
               kChunk * kChunks / seconds / 1e9);
    std::vector<uint32_t> found;
    for (const CompressItem& item : items) found.push_back(item.compressed_bytes);
    if (count == 1) {
      one = seconds;
      sizes = found;
    } else {
      EXPECT_EQ(found, sizes);
      EXPECT_LT(seconds, one);
    }
  }
}

}  // namespace
}  // namespace ptxkit::codec
