// Tests the path to a GPU on the fake driver: a failure at every driver call that a run makes, a slow device, a limited
// device budget, and the policy that decides whether the GPU is used.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/cuda/fake_cuda.hpp"
#include "fkr_tests/cases/cuda/fake_gpu.hpp"
#include "fkr_tests/cases/fake_backend.hpp"
#include "fkr_tests/cases/frames.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/codec/policy/calibrate.hpp"
#include "runtime/codec/policy/choosing_backend.hpp"
#include "runtime/codec/policy/policy.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/driver/error_catalogue.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

using ::testing::HasSubstr;
using ByteVector = std::vector<uint8_t>;

class DeviceFaults : public testing::FakeGpu {
 protected:
  BackendRequest request(std::string name, Policy policy) {
    BackendRequest request = testing::request_on_fake_gpu(images_, std::move(name), policy);
    request.notice = [this](const std::string& message, bool) { notices_.push_back(message); };
    request.copy_executor = &copies_;
    return request;
  }
  // The results of compression and decompression with a new backend.
  struct Outcome {
    Result<ByteVector> frame, raw;
  };
  Outcome round_trip(const BackendRequest& request) {
    auto backend = select_backend(request, executor_);
    if (!backend) return {tl::unexpected(backend.error()), tl::unexpected(backend.error())};
    auto frame = testing::compress_frame(**backend, raw_);
    auto raw = testing::decompress_frame(**backend, frame_);
    return {std::move(frame), std::move(raw)};
  }

  Executor executor_{2}, copies_{1};
  testing::FakeImages images_;
  std::vector<std::string> notices_;
  std::unique_ptr<Backend> cpu_ = make_cpu_backend(executor_);
  const ByteVector raw_ = testing::mixed_content(1'500'000);
  const ByteVector frame_ = testing::compress_frame(*cpu_, raw_).value();
};

// 2: out of memory; 700: illegal address, which destroys the context; 719: launch failure, likewise; 999: unknown
// error.
TEST_F(DeviceFaults, AtEveryDriverCallEndInTheRightResultOrAnErrorThatNamesIt) {
  std::map<std::string, int> calls;
  {
    const auto clean = round_trip(request("cuda", Policy::gpu));
    ASSERT_TRUE(clean.frame && clean.raw);
    ASSERT_EQ(*clean.frame, frame_);
    calls = state_.calls;
  }
  ASSERT_GE(calls.size(), 20u);
  int runs = 0;
  for (const auto& [function, count] : calls) {
    for (int call = 1; call <= count; ++call) {
      for (const int code : {2, 719}) {
        if (code == 2 && call != 1 && call != count) continue;
        SCOPED_TRACE(function + " call " + std::to_string(call) + " fails with " + std::to_string(code));
        const auto injected = [&] {
          state_ = testing::FakeCuda{};
          inject(function.c_str(), call, code);
          notices_.clear();
        };
        injected();
        const auto strict = round_trip(request("cuda", Policy::gpu));
        for (const auto& [result, expected] : {std::pair(&strict.frame, &frame_), std::pair(&strict.raw, &raw_)}) {
          if (*result) {
            EXPECT_EQ(**result, *expected);
          } else {
            EXPECT_THAT((*result).error().message(), HasSubstr(std::string(driver::explain(code).name)));
          }
        }
        for (const Policy policy : {Policy::gpu, Policy::mixed}) {
          injected();
          const auto lenient = round_trip(request("auto", policy));
          EXPECT_EQ(lenient.frame.value(), frame_);
          EXPECT_EQ(lenient.raw.value(), raw_);
          EXPECT_LE(notices_.size(), 1u);
          // Every failure that ends the strict run is worth the one message. A run may make fewer calls than another,
          // because the number of batches that a stream allocates depends on thread timing.
          if (policy == Policy::gpu && (!strict.frame || !strict.raw) && state_.calls[function] >= call) {
            EXPECT_EQ(notices_.size(), 1u);
          }
        }
        ++runs;
      }
    }
  }
  EXPECT_GE(runs, 60);
}

TEST_F(DeviceFaults, ASlowDeviceChangesNothingButTheTime) {
  state_.delay_microseconds = 300;
  for (const Policy policy : {Policy::mixed, Policy::gpu}) {
    state_.calls.clear();
    const auto outcome = round_trip(request("auto", policy));
    EXPECT_EQ(outcome.frame.value(), frame_);
    EXPECT_EQ(outcome.raw.value(), raw_);
    EXPECT_GT(state_.calls["cuLaunchKernel"], 0) << "the device took blocks";
  }
  EXPECT_TRUE(notices_.empty());
}

TEST_F(DeviceFaults, MixedOutputIsTheCpusBitForBit) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{70'000}, size_t{9'000'000}}) {
    const auto backend = select_backend(request("auto", Policy::mixed), executor_).value();
    const ByteVector raw = testing::mixed_content(size);
    for (const int size_id : {4, 6}) {
      SCOPED_TRACE(fmt::format("{} bytes, blocks of id {}", size, size_id));
      state_.calls.clear();
      const ByteVector frame = testing::compress_frame(*backend, raw, size_id).value();
      EXPECT_EQ(state_.calls["cuLaunchKernel"] != 0, size != 0) << "the device took blocks";
      EXPECT_EQ(frame, testing::compress_frame(*cpu_, raw, size_id).value());
      state_.calls.clear();
      EXPECT_EQ(testing::decompress_frame(*backend, frame).value(), raw);
      // A block that is stored is not decoded.
      EXPECT_EQ(state_.calls["cuLaunchKernel"] != 0, size > 1) << "the device took blocks";
    }
  }
}

TEST_F(DeviceFaults, ABudgetBoundsWhatTheDeviceHolds) {
  for (const uint64_t budget : {uint64_t{1} << 20, uint64_t{5} << 20, uint64_t{64} << 20}) {
    state_ = testing::FakeCuda{};
    auto limited = request("cuda", Policy::gpu);
    limited.limits = {.memory_bytes = budget, .queue_count = 3};
    const auto outcome = round_trip(limited);
    EXPECT_EQ(outcome.frame.value(), frame_);
    EXPECT_EQ(outcome.raw.value(), raw_);
    EXPECT_LE(state_.peak_device_bytes, static_cast<long>(budget));
    EXPECT_GT(state_.peak_device_bytes, 0);
    EXPECT_EQ(state_.calls["cuMemGetInfo_v2"], 1);
  }
}

TEST_F(DeviceFaults, TheBudgetIsWhatIsFreeLessAReserve) {
  state_.free_bytes = 1'000'000;
  ASSERT_TRUE(round_trip(request("cuda", Policy::gpu)).frame);
  EXPECT_LE(state_.peak_device_bytes, 750'000);
  EXPECT_GT(state_.peak_device_bytes, 400'000);
}

TEST_F(DeviceFaults, ABlockThatFitsNoQueueIsNeverSubmitted) {
  const ByteVector large = testing::compress_frame(*cpu_, raw_, 7).value();
  auto tight = request("cuda", Policy::gpu);
  tight.limits = {.memory_bytes = 4 << 20, .queue_count = 2};
  {
    const auto cuda = select_backend(tight, executor_).value();
    const auto refused = testing::decompress_frame(*cuda, large);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("an item of 4194304 bytes needs"));
    EXPECT_THAT(refused.error().message(), HasSubstr("bytes of device memory, a queue may take 2097152"));
    EXPECT_EQ(state_.calls["cuLaunchKernel"], 0);
  }
  tight.name = "auto";
  const auto lenient = select_backend(tight, executor_).value();
  EXPECT_EQ(testing::decompress_frame(*lenient, large).value(), raw_);
  EXPECT_EQ(state_.calls["cuLaunchKernel"], 0);
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_THAT(notices_[0], HasSubstr("continuing on the CPU: "));
}

class PolicyTest : public DeviceFaults {
 protected:
  PolicyTest() : folder_(::testing::TempDir() + "ptxkit_rates." + std::to_string(::getpid())) {
    std::filesystem::remove_all(folder_);
  }
  ~PolicyTest() override { std::filesystem::remove_all(folder_); }
  std::string file() const { return folder_ + "/new/device-0.rates"; }
  BackendRequest for_bytes(std::optional<uint64_t> raw_bytes) {
    auto asked = request("auto", Policy::automatic);
    asked.raw_bytes = raw_bytes;
    asked.calibration_path = file();
    asked.sample_lengths = {4096, 16384};
    return asked;
  }
  static Curve at_rate(double bytes_a_second) {
    return Curve({{1, 1 / bytes_a_second}, {1000, 1000 / bytes_a_second}});
  }
  void keep(double gpu_rate) {
    const Curve gpu = at_rate(gpu_rate);
    const Calibration rates{"cuda, device 0, Fake GPU, sm_90, driver for CUDA 12.8",
                            2,
                            {at_rate(1e9), at_rate(1e9), at_rate(2e8), at_rate(4e9)},
                            {gpu, gpu, gpu, gpu},
                            0.5};
    ASSERT_TRUE(save_calibration(rates, file()));
  }
  std::string folder_;
};

TEST_F(PolicyTest, SmallInputsNeverOpenTheDriver) {
  for (const auto bytes :
       {std::optional<uint64_t>(4096), std::optional<uint64_t>(150'000'000), std::optional<uint64_t>()}) {
    EXPECT_EQ(select_backend(for_bytes(bytes), executor_).value()->name(), "cpu");
  }
  EXPECT_EQ(select_backend(request("auto", Policy::cpu), executor_).value()->name(), "cpu");
  EXPECT_EQ(state_.calls["cuInit"], 0);
  EXPECT_TRUE(notices_.empty());
}

// Measuring takes ten seconds: it is never in the way of a stream.
TEST_F(PolicyTest, ALargeInputWithoutRatesIsTheCpusAndMeasuresNothing) {
  const auto asked = for_bytes(uint64_t{1} << 40);
  EXPECT_TRUE(lacks_rates(asked, executor_.thread_count()));
  EXPECT_EQ(select_backend(asked, executor_).value()->name(), "cpu");
  EXPECT_EQ(state_.calls["cuInit"], 0);
  EXPECT_FALSE(load_calibration(file()));
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_THAT(notices_[0], HasSubstr("using the CPU: the GPU's rates are unknown"));
  EXPECT_FALSE(lacks_rates(for_bytes(4096), 2));
  auto nowhere = asked;
  nowhere.calibration_path.clear();
  EXPECT_FALSE(lacks_rates(nowhere, 2));
  auto no_driver = asked;
  no_driver.cuda_library = "/nowhere/libcuda.so";
  EXPECT_FALSE(lacks_rates(no_driver, 2));
  EXPECT_FALSE(lacks_rates(request("auto", Policy::gpu), 2));
}

TEST_F(PolicyTest, WhatWasMeasuredDecidesAndNeverTakesASlowerGpu) {
  // The fake GPU is the scalar reference on one thread: slower than liblz4 on two, unless these get no time. So what is
  // expected is what was measured.
  const auto asked = for_bytes(uint64_t{1} << 40);
  ASSERT_TRUE(measure_rates(asked, executor_));
  EXPECT_GT(state_.calls["cuLaunchKernel"], 2);
  EXPECT_FALSE(lacks_rates(asked, executor_.thread_count()));
  const auto rates = load_calibration(file());
  ASSERT_TRUE(rates);
  EXPECT_EQ(rates->device, "cuda, device 0, Fake GPU, sm_90, driver for CUDA 12.8");
  EXPECT_EQ(rates->cpu_threads, 2u);
  const bool prefers_gpu = rates->prefers_gpu(Work::compress, asked.raw_bytes);
  state_.calls.clear();
  EXPECT_EQ(select_backend(asked, executor_).value()->name(), prefers_gpu ? "cuda" : "cpu");
  EXPECT_EQ(state_.calls["cuInit"], prefers_gpu ? 1 : 0);
  EXPECT_EQ(state_.calls["cuLaunchKernel"], 0);
  EXPECT_TRUE(notices_.empty());
}

TEST_F(PolicyTest, MeasuredRatesDecideWithoutMeasuringAgain) {
  keep(20e9);  // 4 % faster than the CPU's 1e9 after a start of 0.5 s: from 549 MB on
  EXPECT_EQ(select_backend(for_bytes(545'000'000), executor_).value()->name(), "cpu");
  EXPECT_EQ(state_.calls["cuInit"], 0);
  EXPECT_EQ(select_backend(for_bytes(555'000'000), executor_).value()->name(), "cuda");
  EXPECT_EQ(state_.calls["cuLaunchKernel"], 0);
  auto reproducible = for_bytes(110'000'000);  // the CPU does 2e8 a second of this work
  reproducible.work = Work::compress_reproducible;
  EXPECT_EQ(select_backend(reproducible, executor_).value()->name(), "cuda");
}

// CUDA is started for a large total; each stream is then decided by itself, and its runs are recorded.
TEST_F(PolicyTest, EachStreamRunsWhereItIsFaster) {
  const auto curve = [](double first, double last) { return Curve({{100'000, first}, {1'000'000'000, last}}); };
  const Curve cpu = curve(1e-4, 1), gpu = curve(1, 1.1);
  const Calibration rates{
      "cuda, device 0, Fake GPU, sm_90, driver for CUDA 12.8", 2, {cpu, cpu, cpu, cpu}, {gpu, gpu, gpu, gpu}, 0.5};
  ASSERT_TRUE(save_calibration(rates, file()));
  const auto backend = select_backend(for_bytes(uint64_t{1} << 40), executor_).value();
  EXPECT_EQ(backend->name(), "cuda");
  struct Case {
    std::optional<Encoder> encoder;
    bool announced, linked;
    std::string by;
    Encoder used;
  };
  for (const auto& [encoder, announced, linked, by, used] :
       {Case{{}, true, false, "cpu", Encoder::fast},
        Case{Encoder::reproducible, true, false, "cpu", Encoder::reproducible},
        Case{{}, false, false, "cuda", Encoder::reproducible},  // unknown length: assumed to be the total
        Case{{}, false, true, "cpu", Encoder::fast}, Case{Encoder::fast, false, false, "cpu", Encoder::fast}}) {
    format::MemorySource source(raw_, "raw");
    format::MemorySink sink;
    CompressOptions options{.header = {}, .encoder = encoder, .progress = {}};
    options.header.block_size_id = 4;
    options.header.independent_blocks = !linked;
    if (announced) options.header.content_bytes = raw_.size();
    const auto totals = compress_stream(source, sink, *backend, options).value();
    EXPECT_EQ(totals.by.substr(0, totals.by.find(',')), by) << announced << linked;
    EXPECT_EQ(totals.encoder, used);
    EXPECT_EQ(testing::decompress_frame(*cpu_, sink.take()).value(), raw_);
  }
  EXPECT_TRUE(notices_.empty());
}

// All runs take longer than these rates say. So after three runs the GPU, which was believed to be faster, counts as
// busy, and then the CPU, too.
TEST_F(PolicyTest, WhatStreamsTookIsRemembered) {
  const auto curve = [](double last) { return Curve({{1, last / 1e9}, {1'000'000'000, last}}); };
  const Curve cpu = curve(1e-8), gpu = curve(1e-9);
  const auto backend =
      choosing(select_backend(request("cuda", Policy::gpu), executor_).value(), make_cpu_backend(executor_),
               {"", 2, {cpu, cpu, cpu, cpu}, {gpu, gpu, gpu, gpu}, 0}, {});
  format::FrameHeader header;
  header.content_bytes = raw_.size();
  ByteVector frame;
  std::string compressed_by, decompressed_by;
  for (int run = 0; run < 6; ++run) {
    format::MemorySource source(raw_, "raw");
    format::MemorySink sink;
    compressed_by += compress_stream(source, sink, *backend, {.header = header, .encoder = {}, .progress = {}})
                         .value()
                         .by.substr(0, 2);
    frame = sink.take();
  }
  EXPECT_EQ(compressed_by, "cucucucpcpcp");
  for (int run = 0; run < 6; ++run) {
    format::MemorySource source(frame, "frame");
    format::MemorySink sink;
    decompressed_by += decompress_stream(source, sink, *backend).value().by.substr(0, 2);
    EXPECT_EQ(sink.take(), raw_);
  }
  EXPECT_EQ(decompressed_by, "cucucucpcpcp");
}

TEST_F(PolicyTest, RatesOfAnotherDeviceOrThreadCountCountAsNone) {
  const auto asked = for_bytes(uint64_t{1} << 40);
  keep(20e9);
  state_.driver_version = 12090;
  EXPECT_EQ(select_backend(asked, executor_).value()->name(), "cpu");
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_THAT(notices_[0], HasSubstr("what was measured was another device or driver"));
  EXPECT_TRUE(lacks_rates(asked, executor_.thread_count()));
  ASSERT_TRUE(measure_rates(asked, executor_));
  EXPECT_THAT(load_calibration(file())->device, HasSubstr("CUDA 12.9"));
  state_ = testing::FakeCuda{};
  keep(20e9);
  Executor three(3);
  EXPECT_TRUE(lacks_rates(asked, 3));
  EXPECT_EQ(select_backend(asked, three).value()->name(), "cpu");
  ASSERT_TRUE(measure_rates(asked, three));
  EXPECT_EQ(load_calibration(file())->cpu_threads, 3u);
}

// Lengths range from pure latency to where new buffers no longer matter.
TEST_F(PolicyTest, SamplesGoFromFourKibibytesToSixteenBatches) {
  const auto cpu = make_cpu_backend(executor_), gpu = select_backend(request("cuda", Policy::gpu), executor_).value();
  const auto lengths = sample_lengths(*cpu, *gpu);
  ASSERT_GE(lengths.size(), 6u);
  const uint64_t batch_bytes = std::max(cpu->preferred_batch_bytes(65536), gpu->preferred_batch_bytes(65536));
  EXPECT_EQ(lengths.back(), std::clamp<uint64_t>(16 * batch_bytes, 4u << 20, 256u << 20));
  EXPECT_LT(lengths[0], 4u * 4096);
  EXPECT_GE(lengths[0], 4096u);
  for (size_t i = 1; i < lengths.size(); ++i) {
    EXPECT_EQ(lengths[i] / (lengths[i] <= 1u << 20 ? 2 : 4), lengths[i - 1]);
  }
}

TEST_F(PolicyTest, WithoutAUsableGpuTheCpuDoesItWithOneMessage) {
  keep(20e9);
  state_.driver_version = 10020;
  EXPECT_EQ(select_backend(for_bytes(uint64_t{1} << 40), executor_).value()->name(), "cpu");
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_THAT(notices_[0], HasSubstr("using the CPU: "));
  EXPECT_THAT(notices_[0], HasSubstr("too old"));
  std::filesystem::remove(file());
  state_ = testing::FakeCuda{};
  inject("cuLaunchKernel", 1, 719);
  EXPECT_THAT(measure_rates(for_bytes(uint64_t{1} << 40), executor_).error().message(),
              HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
  EXPECT_FALSE(load_calibration(file()));
}

TEST_F(PolicyTest, AFileThatIsNotWholeCountsAsNone) {
  keep(20e9);
  std::string content;
  {
    std::ifstream in(file());
    content.assign(std::istreambuf_iterator<char>(in), {});
  }
  ASSERT_TRUE(load_calibration(file()));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = content;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  std::vector<std::string> broken = {"",
                                     with("rates 4", "rates 3"),
                                     content + "x",
                                     with("2 0.5", "2 -1"),
                                     with("cpu compress_text 1 ", "cpu expand 1 "),
                                     with("cpu compress_text 1 ", "tpu compress_text 1 "),
                                     with("cpu compress_text 1 ", "cpu compress_text 0 "),
                                     with("cpu compress_text 1 ", "cpu compress_text 1000 "),
                                     with("1e-06", "0"),
                                     with("gpu decompress 1 5e-11\n", "")};
  for (size_t length = 0; length + 4 < content.size(); length += 9) broken.push_back(content.substr(0, length));
  for (const std::string& text : broken) {
    std::ofstream(file()) << text;
    const auto loaded = load_calibration(file());
    EXPECT_FALSE(loaded) << text;
  }
  EXPECT_FALSE(load_calibration(""));
  EXPECT_FALSE(load_calibration(folder_));
  EXPECT_FALSE(save_calibration({}, file() + "/below"));
}

}  // namespace
}  // namespace ptxkit::codec
