// The scheduler on a GPU: mixed output, adherence to a device budget, and whether the policy chooses the faster side.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/frames.hpp"
#include "fkr_tests/cases/generated_source.hpp"
#include "fkr_tests/device/device.hpp"
#include "kernels/images.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/device/cuda_machine.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/codec/policy/calibrate.hpp"
#include "runtime/codec/policy/policy.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "runtime/codec/threads/throttle.hpp"
#include "support/plural.hpp"

namespace ptxkit::codec {
namespace {

using ByteVector = std::vector<uint8_t>;

constexpr uint64_t kMiB = 1 << 20;

// $PTXKIT_STREAM_MIB is the length in MiB if 4 GiB would take too long.
uint64_t stream_bytes() {
  const char* const chosen = std::getenv("PTXKIT_STREAM_MIB");
  return (chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : 4096) * kMiB;
}

class DeviceScheduling : public ::testing::Test {
 protected:
  void SetUp() override { PTXKIT_REQUIRE_DEVICE(); }

  // `devices`: empty for the device of the tests.
  std::unique_ptr<Backend> backend(std::string name, Policy policy, const CudaLimits& limits = {},
                                   std::vector<int> devices = {}) {
    BackendRequest wanted = request(std::move(name), policy);
    if (!devices.empty()) wanted.devices = std::move(devices);
    wanted.limits = limits;
    return select_backend(wanted, executor_).value();
  }
  BackendRequest request(std::string name, Policy policy) {
    BackendRequest made;
    made.name = std::move(name);
    made.policy = policy;
    made.devices = {(*testing::device())->info().ordinal};
    made.find_image = kernels::find_kernel_image;
    made.notice = [](const std::string& message, bool) { ADD_FAILURE() << message; };
    made.copy_executor = &copies_;
    return made;
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

TEST_F(DeviceScheduling, FourGibibytesStayBelowADeviceBudgetOf64MiB) {
  const uint64_t length = stream_bytes();
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
  const uint64_t longest = stream_bytes();
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

// The time of `job_count` streams of `total_bytes` together, each on a thread, which share a backend and a budget.
double seconds_of_jobs(Backend& shared, Encoder encoder, unsigned job_count, uint64_t total_bytes, bool has_checksum) {
  scheduler::Ledger memory("memory", 1024 * kMiB);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> jobs;
  for (unsigned job = 0; job < job_count; ++job) {
    jobs.emplace_back([&] {
      SampleSource source(total_bytes / job_count);
      format::NullSink sink;
      format::FrameHeader header;
      header.block_size_id = 4;
      header.content_bytes = total_bytes / job_count;
      header.content_checksum = has_checksum;
      const auto done = compress_stream(source, sink, shared,
                                        {.header = header,
                                         .encoder = encoder,
                                         .progress = {},
                                         .limits = {.memory = &memory, .prefetch = 2, .stop = {}}});
      EXPECT_TRUE(done) << done.error().message();
    });
  }
  for (std::thread& job : jobs) job.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Twenty streams against one with the same total. The streams are long enough to be worth a GPU. A warm-up pays for
// locking pages.
TEST_F(DeviceScheduling, TwentyJobsAreAsFastAsOne) {
  constexpr unsigned kJobs = 20;
  for (const auto& [name, policy] : {std::pair("cuda", Policy::gpu), std::pair("cpu", Policy::cpu)}) {
    const auto shared = backend(name, policy);
    const auto seconds_of = [&](unsigned job_count) {
      return seconds_of_jobs(*shared, shared->default_encoder(), job_count, stream_bytes(), true);
    };
    seconds_of(kJobs);
    const double one = std::min(seconds_of(1), seconds_of(1)), many = std::min(seconds_of(kJobs), seconds_of(kJobs));
    fmt::print("{}: one job {:.2f} GB/s, twenty {:.2f}\n", name, static_cast<double>(stream_bytes()) / one / 1e9,
               static_cast<double>(stream_bytes()) / many / 1e9);
    EXPECT_GE(one / many, 0.95) << name;
  }
}

// Prints the table for docs: 1 to 20 jobs, with and without a checksum of the content, each knob of `mixed` off and on.
TEST_F(DeviceScheduling, JobsThatShareADevice) {
  scheduler::Throttle throttle;
  const unsigned cores = executor_.thread_count();
  std::vector<unsigned> coding_cores, copy_cores;
  for (unsigned core = 0; core < cores; ++core) (core < cores / 4 ? copy_cores : coding_cores).push_back(core);
  Executor placed(0, Placement{.cores = coding_cores}), placed_copies(0, Placement{.cores = copy_cores});
  Executor yielding(0, Placement{.cores = coding_cores, .throttle = &throttle});
  struct Variant {
    const char* name;
    Executor& coding;
    Executor& copies;
    scheduler::Throttle* throttle;
    Policy policy;
  };
  for (const Variant& variant :
       {Variant{"cpu", executor_, copies_, nullptr, Policy::cpu},
        Variant{"gpu", executor_, copies_, nullptr, Policy::gpu},
        Variant{"mixed", executor_, copies_, nullptr, Policy::mixed},
        Variant{"mixed, cores", placed, placed_copies, nullptr, Policy::mixed},
        Variant{"mixed, cores, throttle", yielding, placed_copies, &throttle, Policy::mixed}}) {
    BackendRequest wanted = request("auto", variant.policy);
    wanted.copy_executor = &variant.copies;
    wanted.throttle = variant.throttle;
    const auto shared = select_backend(wanted, variant.coding).value();
    for (const bool has_checksum : {true, false}) {
      std::string row = fmt::format("{:24} {:12}", variant.name, has_checksum ? "checksum" : "no checksum");
      seconds_of_jobs(*shared, Encoder::reproducible, 20, stream_bytes(), has_checksum);
      for (const unsigned job_count : {1u, 5u, 10u, 15u, 20u}) {
        double seconds = 1e300;
        for (int run = 0; run < 2; ++run)
          seconds = std::min(seconds,
                             seconds_of_jobs(*shared, Encoder::reproducible, job_count, stream_bytes(), has_checksum));
        row += fmt::format(" {:7.2f}", static_cast<double>(stream_bytes()) / seconds / 1e9);
      }
      fmt::print("{} GB/s\n", row);
    }
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
