// The whole way to a GPU on the fake driver: a failure injected at every driver call that a run makes, a slow device, a
// device budget, and the policy that decides whether there is a run at all.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fkr_tests/corpus.hpp"
#include "fkr_tests/frames.hpp"
#include "fkr_tests/unit/runtime/fake_backend.hpp"
#include "runtime/codec/calibrate.hpp"
#include "runtime/codec/select_backend.hpp"

namespace ptxkit::codec {
namespace {

using ::testing::HasSubstr;
using ByteVector = std::vector<std::uint8_t>;

class DeviceFaults : public testing::FakeGpu {
 protected:
  BackendRequest request(std::string name, Policy policy) {
    BackendRequest request = testing::request_on_fake_gpu(images_, std::move(name), policy);
    request.notice = [this](const std::string& message, bool) { notices_.push_back(message); };
    request.copy_executor = &copies_;
    return request;
  }
  // There and back through a backend of its own.
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

// 2: out of memory; 700: illegal address, the context is dead; 719: launch failure, likewise; 999: unknown.
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
    for (const int call : std::set<int>{1, count}) {
      for (const int code : {2, 719}) {
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
          // Whatever makes the strict run fail is worth the one message. A run may make fewer calls than another: how
          // many batches a stream allocates depends on which of its threads is quicker.
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
  // Of a mixed run the CPU may take every block before a slow device has begun.
  for (const Policy policy : {Policy::mixed, Policy::gpu}) {
    const auto outcome = round_trip(request("auto", policy));
    EXPECT_EQ(outcome.frame.value(), frame_);
    EXPECT_EQ(outcome.raw.value(), raw_);
  }
  EXPECT_TRUE(notices_.empty());
  EXPECT_GT(state_.calls["cuLaunchKernel"], 0);
}

TEST_F(DeviceFaults, MixedOutputIsTheCpusBitForBit) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{70'000}, std::size_t{9'000'000}}) {
    const auto backend = select_backend(request("auto", Policy::mixed), executor_).value();
    const ByteVector raw = testing::mixed_content(size);
    for (const int size_id : {4, 6}) {
      const ByteVector frame = testing::compress_frame(*backend, raw, size_id).value();
      EXPECT_EQ(frame, testing::compress_frame(*cpu_, raw, size_id).value());
      EXPECT_EQ(testing::decompress_frame(*backend, frame).value(), raw);
    }
  }
}

TEST_F(DeviceFaults, ABudgetBoundsWhatTheDeviceHolds) {
  for (const std::uint64_t budget : {std::uint64_t{1} << 20, std::uint64_t{5} << 20, std::uint64_t{64} << 20}) {
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
  BackendRequest for_bytes(std::optional<std::uint64_t> raw_bytes) {
    auto asked = request("auto", Policy::automatic);
    asked.raw_bytes = raw_bytes;
    asked.calibration_path = file();
    asked.limits.memory_bytes = 1 << 20;  // so that the sample is small, too
    return asked;
  }
  static Curve at_rate(double bytes_a_second) {
    return Curve({{1, 1 / bytes_a_second}, {1000, 1000 / bytes_a_second}});
  }
  void keep(double gpu_rate) {
    const Curve gpu = at_rate(gpu_rate);
    const Calibration rates{"cuda, device 0, Fake GPU, sm_90, driver for CUDA 12.8",
                            2,
                            {at_rate(1e9), at_rate(2e8), at_rate(4e9)},
                            {gpu, gpu, gpu},
                            0.5};
    ASSERT_TRUE(save_calibration(rates, file()));
  }
  std::string folder_;
};

TEST_F(PolicyTest, SmallInputsNeverOpenTheDriver) {
  for (const auto bytes : {std::optional<std::uint64_t>(4096), std::optional<std::uint64_t>(150'000'000),
                           std::optional<std::uint64_t>()}) {
    EXPECT_EQ(select_backend(for_bytes(bytes), executor_).value()->name(), "cpu");
  }
  EXPECT_EQ(select_backend(request("auto", Policy::cpu), executor_).value()->name(), "cpu");
  EXPECT_EQ(state_.calls["cuInit"], 0);
  EXPECT_TRUE(notices_.empty());
}

TEST_F(PolicyTest, ALargeInputCalibratesOnceAndNeverTakesASlowerGpu) {
  // The fake GPU is the scalar reference on one thread: slower than liblz4 on two, unless these get no time. So what is
  // expected is what was measured.
  const auto asked = for_bytes(std::uint64_t{1} << 40);
  const std::string chosen(select_backend(asked, executor_).value()->name());
  EXPECT_GT(state_.calls["cuLaunchKernel"], 2);
  const auto rates = load_calibration(file());
  ASSERT_TRUE(rates);
  EXPECT_EQ(rates->device, "cuda, device 0, Fake GPU, sm_90, driver for CUDA 12.8");
  EXPECT_EQ(rates->cpu_threads, 2u);
  const bool prefers_gpu = rates->prefers_gpu(Work::compress, asked.raw_bytes);
  EXPECT_EQ(chosen, prefers_gpu ? "cuda" : "cpu");
  if (!prefers_gpu) {
    ASSERT_EQ(notices_.size(), 1u);
    EXPECT_THAT(notices_[0], HasSubstr("using the CPU: it was measured to be faster"));
  }
  state_.calls.clear();
  EXPECT_EQ(select_backend(asked, executor_).value()->name(), chosen);
  EXPECT_EQ(state_.calls["cuInit"], prefers_gpu ? 1 : 0);  // known by now
  EXPECT_EQ(state_.calls["cuLaunchKernel"], 0);
}

TEST_F(PolicyTest, MeasuredRatesDecideWithoutMeasuringAgain) {
  keep(20e9);  // as fast as the CPU's 1e9 after 0.5 s: at 526 MB
  EXPECT_EQ(select_backend(for_bytes(520'000'000), executor_).value()->name(), "cpu");
  EXPECT_EQ(state_.calls["cuInit"], 0);
  EXPECT_EQ(select_backend(for_bytes(530'000'000), executor_).value()->name(), "cuda");
  EXPECT_EQ(state_.calls["cuLaunchKernel"], 0);
  auto reproducible = for_bytes(110'000'000);  // of which the CPU does 2e8
  reproducible.work = Work::compress_reproducible;
  EXPECT_EQ(select_backend(reproducible, executor_).value()->name(), "cuda");
}

TEST_F(PolicyTest, RatesOfAnotherDeviceOrThreadCountAreMeasuredAnew) {
  keep(20e9);
  state_.driver_version = 12090;
  ASSERT_TRUE(select_backend(for_bytes(std::uint64_t{1} << 40), executor_));
  EXPECT_THAT(load_calibration(file())->device, HasSubstr("CUDA 12.9"));
  state_ = testing::FakeCuda{};
  keep(20e9);
  Executor three(3);
  ASSERT_TRUE(select_backend(for_bytes(std::uint64_t{1} << 40), three));
  EXPECT_EQ(load_calibration(file())->cpu_threads, 3u);
}

TEST_F(PolicyTest, WithoutAUsableGpuTheCpuDoesItWithOneMessage) {
  state_.driver_version = 10020;
  EXPECT_EQ(select_backend(for_bytes(std::uint64_t{1} << 40), executor_).value()->name(), "cpu");
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_THAT(notices_[0], HasSubstr("using the CPU: "));
  EXPECT_THAT(notices_[0], HasSubstr("too old"));
  notices_.clear();
  state_ = testing::FakeCuda{};
  inject("cuLaunchKernel", 1, 719);  // while it is being measured
  EXPECT_EQ(select_backend(for_bytes(std::uint64_t{1} << 40), executor_).value()->name(), "cpu");
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_THAT(notices_[0], HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
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
                                     with("rates 2", "rates 1"),
                                     content + "x",
                                     with("2 0.5", "2 -1"),
                                     with("cpu compress 1 ", "cpu expand 1 "),
                                     with("cpu compress 1 ", "tpu compress 1 "),
                                     with("cpu compress 1 ", "cpu compress 0 "),
                                     with("cpu compress 1 ", "cpu compress 1000 "),
                                     with("1e-06", "0"),
                                     with("gpu decompress 1 5e-11\n", "")};
  for (std::size_t length = 0; length + 4 < content.size(); length += 9) broken.push_back(content.substr(0, length));
  for (const std::string& text : broken) {
    std::ofstream(file()) << text;
    const auto loaded = load_calibration(file());
    EXPECT_FALSE(loaded) << text;
  }
  EXPECT_FALSE(load_calibration(""));
  EXPECT_FALSE(load_calibration(folder_));
  EXPECT_FALSE(save_calibration({}, file() + "/below"));
}

// Curves as an H200's host had them: liblz4 on 16 threads slower while its buffers are new, an encoder of a few GB/s
// behind a latency, and one that is far better from some length on.
TEST_F(PolicyTest, TheModelIsWithinFivePercentOfTheBetterSide) {
  struct Side {
    double latency, new_bytes, new_each, each;
    double operator()(std::uint64_t bytes) const {
      const auto size = static_cast<double>(bytes);
      return latency + std::min(size, new_bytes) * new_each + size * each;
    }
  };
  const Side liblz4{60e-6, 48e6, 0.5e-9, 0.4e-9}, kernels{800e-6, 144e6, 0.05e-9, 0.355e-9},
      fast_kernels{800e-6, 144e6, 0.05e-9, 0.16e-9};
  const std::uint64_t most = std::uint64_t{1} << 28;
  std::vector<std::uint64_t> lengths;
  for (std::uint64_t length = 4096; length <= most; length *= 4) lengths.push_back(length);
  for (const Side& gpu : {kernels, fast_kernels}) {
    const auto curve = [&](const Side& side) {
      return measure_curve(lengths, [&](std::uint64_t length) -> Result<double> { return side(length); }).value();
    };
    const Curve on_cpu = curve(liblz4), on_gpu = curve(gpu);
    for (const double start : {0.0, 0.3}) {
      const Calibration measured{"", 16, {on_cpu, on_cpu, on_cpu}, {on_gpu, on_gpu, on_gpu}, start};
      int changes = 0;
      bool before = false;
      for (double length = 4096; length <= 4.4e9; length *= 1.07) {
        const auto bytes = static_cast<std::uint64_t>(length);
        const double cpu = liblz4(bytes), other = start + gpu(bytes);
        const bool chosen = measured.prefers_gpu(Work::compress, bytes);
        EXPECT_LE(chosen ? other : cpu, 1.05 * std::min(cpu, other)) << bytes;
        changes += chosen != before;
        before = chosen;
      }
      // The slow encoder never earns the start within 4 GiB: 45 ps a byte are 0.19 s.
      EXPECT_EQ(changes, gpu.each > 0.2e-9 && start > 0 ? 0 : 1);
    }
  }
}

TEST_F(PolicyTest, TheBestOfAFewRunsCounts) {
  int run = 0;
  const auto curve = measure_curve({1000, 2000}, [&](std::uint64_t length) -> Result<double> {
    return static_cast<double>(length) * (++run % 3 == 0 ? 1 : 5);
  });
  EXPECT_EQ(curve->samples(), (std::vector<Curve::Sample>{{1000, 1000}, {2000, 2000}}));
  EXPECT_EQ(run, 6);
  EXPECT_EQ(measure_curve({1, 2}, [](std::uint64_t) -> Result<double> { return fail("lost"); }).error().what, "lost");
}

TEST_F(PolicyTest, ACurveIsLinesBetweenItsSamplesAndBeyond) {
  const Curve curve({{1000, 2}, {3000, 4}, {5000, 3}, {6000, 5}});  // 5000: measured too fast
  for (const auto& [bytes, seconds] :
       {std::pair(0, 2.0), std::pair(1000, 2.0), std::pair(2000, 3.0), std::pair(3000, 4.0), std::pair(4000, 4.0),
        std::pair(5000, 4.0), std::pair(6000, 5.0), std::pair(10000, 9.0)}) {
    EXPECT_DOUBLE_EQ(curve.seconds(static_cast<std::uint64_t>(bytes)), seconds) << bytes;
  }
  EXPECT_DOUBLE_EQ(curve.rate(), 1000);
  EXPECT_EQ(Curve().seconds(1 << 30), 0);
  EXPECT_TRUE(std::isinf(Curve().rate()));
}

TEST_F(PolicyTest, TheModelTakesTheBetterSideAtEverySize) {
  const Calibration rates{
      "", 16, {at_rate(6e9), at_rate(2e9), at_rate(24e9)}, {at_rate(45e9), at_rate(45e9), at_rate(50e9)}, 0.25};
  for (const Work work : {Work::compress, Work::compress_reproducible, Work::decompress}) {
    bool gpu_before = false;
    for (std::uint64_t bytes = 4096; bytes <= std::uint64_t{1} << 36; bytes *= 2) {
      const double cpu = rates.cpu_seconds(work, bytes), gpu = rates.gpu_seconds(work, bytes);
      const bool chosen = rates.prefers_gpu(work, bytes);
      EXPECT_EQ(chosen ? gpu : cpu, std::min(cpu, gpu));
      EXPECT_LE(gpu_before, chosen) << "one crossover";
      gpu_before = chosen;
    }
    EXPECT_TRUE(gpu_before);
    EXPECT_FALSE(rates.prefers_gpu(work, std::nullopt));
  }
  // Unmeasured: only what 16 threads need longer than 0.2 s for.
  EXPECT_FALSE(unmeasured(16).prefers_gpu(Work::compress, 1'270'000'000));
  EXPECT_TRUE(unmeasured(16).prefers_gpu(Work::compress, 1'290'000'000));
}

}  // namespace
}  // namespace ptxkit::codec
