// `.ptz` through the scheduler, on a driver whose GPU is the emulator: every policy and codec, a failure injected at
// the driver calls that a run makes, several devices, budgets, cancellation.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/cuda/fake_cuda.hpp"
#include "fkr_tests/cases/cuda/fake_gpu.hpp"
#include "fkr_tests/cases/ptz_codecs.hpp"
#include "fkr_tests/cases/stopping_sink.hpp"
#include "kernels/images.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/device/cuda_machine.hpp"
#include "runtime/codec/device/machine.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/codecs.hpp"
#include "runtime/codec/policy/block_rates.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/stream/ptz_stream.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "runtime/codec/threads/trace.hpp"
#include "runtime/driver/context.hpp"
#include "runtime/driver/driver.hpp"
#include "runtime/driver/error_catalogue.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

using format::PtzCodec;
using format::PtzCoding;
using ::testing::HasSubstr;
using ByteVector = std::vector<uint8_t>;

class ScheduledPtz : public ::testing::Test {
 protected:
  static constexpr unsigned kBlockBits = 12;

  ScheduledPtz() : state_(testing::fake_cuda(EMULATED_CUDA)) { state_ = testing::FakeCuda{}; }

  BackendRequest request(std::string name, Policy policy, int devices = 1) {
    BackendRequest request;
    request.name = std::move(name);
    request.policy = policy;
    request.devices.resize(static_cast<size_t>(devices));
    std::iota(request.devices.begin(), request.devices.end(), 0);
    request.find_image = kernels::find_kernel_image;
    request.cuda_library = EMULATED_CUDA;
    request.copy_executor = &copies_;
    request.notice = [this](const std::string& message, bool matters) {
      std::lock_guard lock(mutex_);
      notices_.push_back((matters ? "" : "-v ") + message);
    };
    return request;
  }
  Result<ByteVector> packed(const PtzCoding& codec, BlockCoder* coder, const StreamLimits& limits = {}) {
    format::MemorySource source(raw_, "raw");
    format::MemorySink sink;
    const auto done =
        compress_ptz(source, sink, executor_, {codec, kBlockBits}, {.coder = coder, .progress = {}, .limits = limits});
    if (!done) return tl::unexpected(done.error());
    return sink.take();
  }
  Result<ByteVector> unpacked(const ByteVector& file, BlockCoder* coder, const StreamLimits& limits = {}) {
    format::MemorySource source(file, "file");
    format::MemorySink sink;
    const auto done = decompress_ptz(source, sink, executor_, {.coder = coder, .progress = {}, .limits = limits});
    if (!done) return tl::unexpected(done.error());
    return sink.take();
  }
  struct Outcome {
    Result<ByteVector> file, raw;
  };
  // There and back through a coder of its own.
  Outcome round_trip(const PtzCoding& codec, const BackendRequest& request, const StreamLimits& limits = {}) {
    auto coder = select_block_coder(request, executor_);
    if (!coder) return {tl::unexpected(coder.error()), tl::unexpected(coder.error())};
    auto file = packed(codec, coder->get(), limits);
    auto raw = unpacked(packed(codec, nullptr).value(), coder->get(), limits);
    return {std::move(file), std::move(raw)};
  }
  void inject(const std::string& function, int call, int code, int device = -1) {
    state_ = testing::FakeCuda{};
    notices_.clear();
    state_.failing_function = function;
    state_.failing_call = call;
    state_.failing_code = code;
    state_.failing_device = device;
  }
  void expect_right(const PtzCoding& codec, const Outcome& outcome) {
    EXPECT_TRUE(outcome.file.value() == packed(codec, nullptr).value());
    EXPECT_TRUE(outcome.raw.value() == raw_);
  }

  testing::FakeCuda& state_;
  Executor executor_{2}, copies_{1};
  // Blocks that shrink, some that do not, and a short one at the end.
  const ByteVector raw_ = [] {
    ByteVector raw = testing::matchable_bytes(2 << kBlockBits, 1);
    const ByteVector noise = testing::random_bytes(1 << kBlockBits, 2);
    raw.insert(raw.end(), noise.begin(), noise.end());
    raw.insert(raw.end(), 700, 'x');
    return raw;
  }();
  std::mutex mutex_;
  std::vector<std::string> notices_;
};

TEST_F(ScheduledPtz, EveryPolicyGivesTheSameBytesOfEveryCodec) {
  for (const PtzCoding& codec : testing::ptz_codecs()) {
    for (const auto& [name, policy, uses_driver] :
         {std::tuple("auto", Policy::cpu, false), std::tuple("auto", Policy::gpu, true),
          std::tuple("auto", Policy::mixed, true), std::tuple("cuda", Policy::automatic, true),
          std::tuple("cpu", Policy::automatic, false), std::tuple("emulator", Policy::automatic, false)}) {
      SCOPED_TRACE(fmt::format("{} {} {}", format::name_of(codec), name, static_cast<int>(policy)));
      state_ = testing::FakeCuda{};
      expect_right(codec, round_trip(codec, request(name, policy)));
      EXPECT_EQ(state_.calls["cuInit"], uses_driver ? 1 : 0);
      EXPECT_EQ(state_.calls["cuLaunchKernel"] != 0, uses_driver) << "the device took blocks";
      EXPECT_TRUE(notices_.empty());
    }
  }
}

TEST_F(ScheduledPtz, SaysWhatCodes) {
  const auto description = [&](const char* name, Policy policy) {
    return select_block_coder(request(name, policy), executor_).value()->description();
  };
  EXPECT_EQ(description("auto", Policy::cpu), "cpu, 2 threads");
  EXPECT_THAT(description("auto", Policy::gpu), ::testing::StartsWith("cuda, device 0, Emulated GPU"));
  EXPECT_THAT(description("auto", Policy::mixed), ::testing::EndsWith("; with cpu, 2 threads"));
  EXPECT_THAT(description("emulator", Policy::gpu), HasSubstr("PTX emulator"));
  EXPECT_THAT(select_block_coder(request("tpu", Policy::gpu), executor_).error().message(),
              HasSubstr("there is no backend named tpu"));
}

// 2: out of memory; 719: launch failure, after which the context is dead.
TEST_F(ScheduledPtz, AFailureOfAnyDriverCallEndsInTheSameBytesOrAnErrorThatNamesIt) {
  inject("", 0, 0);
  expect_right(PtzCodec::lzr, round_trip(PtzCodec::lzr, request("cuda", Policy::gpu)));
  const std::map<std::string, int> calls = state_.calls;
  ASSERT_GE(calls.size(), 14u);
  for (const auto& [function, count] : calls) {
    for (const auto& [call, code] : {std::pair(1, 2), std::pair(1, 719), std::pair(count, 719)}) {
      SCOPED_TRACE(fmt::format("{} call {} fails with {}", function, call, code));
      inject(function, call, code);
      const auto strict = round_trip(PtzCodec::lzr, request("cuda", Policy::gpu));
      const bool is_strict_right = strict.file && strict.raw;
      for (const auto* result : {&strict.file, &strict.raw}) {
        if (!*result) {
          EXPECT_THAT(result->error().message(), HasSubstr(std::string(driver::explain(code).name)));
        }
      }
      for (const Policy policy : {Policy::gpu, Policy::mixed}) {
        inject(function, call, code);
        expect_right(PtzCodec::lzr, round_trip(PtzCodec::lzr, request("auto", policy)));
        EXPECT_LE(notices_.size(), 1u);
        if (policy == Policy::gpu) {
          EXPECT_EQ(notices_.size(), is_strict_right ? 0u : 1u);
        }
      }
    }
  }
}

TEST_F(ScheduledPtz, ADeviceThatIsLostHalfWayChangesNoBytesOfAnyCodec) {
  for (const PtzCoding& codec : testing::ptz_codecs()) {
    inject("", 0, 0);
    expect_right(codec, round_trip(codec, request("cuda", Policy::gpu)));
    for (const char* function : {"cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuEventSynchronize"}) {
      SCOPED_TRACE(fmt::format("{} {}", format::name_of(codec), function));
      const int count = state_.calls[function];
      inject(function, count / 2, 719);
      expect_right(codec, round_trip(codec, request("auto", Policy::gpu)));
      EXPECT_EQ(notices_.size(), 1u);
      state_.calls[function] = count;
    }
  }
}

TEST_F(ScheduledPtz, TheOthersCodeTheBlocksOfADeviceThatFails) {
  for (const char* name : {"cuda", "auto"}) {
    for (const int failing : {0, 1, 2}) {
      inject("cuMemcpyHtoDAsync_v2", 1, 719, failing);
      state_.device_count = 3;
      const auto outcome = round_trip(PtzCodec::lzr, request(name, Policy::gpu, 3));
      expect_right(PtzCodec::lzr, outcome);
      EXPECT_LE(notices_.size(), 1u);  // a device that got no block has not failed
      for (const std::string& notice : notices_) EXPECT_THAT(notice, HasSubstr("continuing on 2 of 3 GPUs: device"));
    }
  }
}

TEST_F(ScheduledPtz, WhenNoDeviceIsLeftTheCpuGoesOnOrThatIsTheError) {
  inject("cuMemcpyHtoDAsync_v2", 1, 719);  // which every later call repeats
  state_.device_count = 2;
  EXPECT_THAT(round_trip(PtzCodec::lzr, request("cuda", Policy::gpu, 2)).file.error().message(),
              HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
  for (const Policy policy : {Policy::gpu, Policy::mixed}) {
    inject("cuMemcpyHtoDAsync_v2", 1, 719);
    state_.device_count = 2;
    expect_right(PtzCodec::lzr, round_trip(PtzCodec::lzr, request("auto", policy, 2)));
    ASSERT_FALSE(notices_.empty());
    EXPECT_THAT(notices_.back(), HasSubstr("continuing on the CPU: "));
  }
}

TEST_F(ScheduledPtz, ADeviceThatIsMissingIsAnErrorOrAWarning) {
  EXPECT_THAT(select_block_coder(request("cuda", Policy::gpu, 2), executor_).error().message(),
              HasSubstr("there is no device 1"));
  notices_.clear();
  expect_right(PtzCodec::lzr, round_trip(PtzCodec::lzr, request("auto", Policy::gpu, 2)));
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_THAT(notices_[0], HasSubstr("using 1 of 2 GPUs: there is no device 1"));
  auto nowhere = request("auto", Policy::mixed);
  nowhere.cuda_library = "/nowhere/libcuda.so";
  notices_.clear();
  expect_right(PtzCodec::lzr, round_trip(PtzCodec::lzr, nowhere));
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_THAT(notices_[0], HasSubstr("-v using the CPU: no NVIDIA driver"));
}

// The CPU's share counts: it may have to take over.
TEST_F(ScheduledPtz, KeepsToItsBudget) {
  for (const Policy policy : {Policy::gpu, Policy::mixed}) {
    scheduler::Ledger memory("memory", 700'000);
    expect_right(PtzCodec::lzr, round_trip(PtzCodec::lzr, request("auto", policy), {.memory = &memory, .stop = {}}));
    EXPECT_LE(memory.peak_bytes(), 700'000u);
    EXPECT_GE(memory.peak_bytes(), encoding_bytes(PtzCodec::lzr, 1 << kBlockBits));
    EXPECT_EQ(memory.reserved_bytes(), 0u);
  }
}

TEST_F(ScheduledPtz, IsCancelledBetweenTwoBatches) {
  const ByteVector raw = testing::matchable_bytes(16 << kBlockBits, 5);
  format::MemorySource raw_source(raw, "raw");
  format::MemorySink file;
  ASSERT_TRUE(compress_ptz(raw_source, file, executor_, {PtzCodec::lzr, kBlockBits}));
  for (const Policy policy : {Policy::gpu, Policy::mixed}) {
    const auto coder = select_block_coder(request("auto", policy), executor_).value();
    scheduler::Ledger memory("memory", 700'000);  // few blocks a batch
    format::MemorySource source(file.bytes(), "file");
    testing::StoppingSink sink(1);
    const auto done = decompress_ptz(
        source, sink, executor_, {.coder = coder.get(), .progress = {}, .limits = {&memory, 1, sink.stop.get_token()}});
    EXPECT_EQ(done.error().what, "cancelled");
    EXPECT_LT(sink.written.size(), raw.size());
    EXPECT_TRUE(std::equal(sink.written.begin(), sink.written.end(), raw.begin()));
    EXPECT_EQ(memory.reserved_bytes(), 0u);
  }
}

// The automatic policy begins on the CPU and starts the device beside it; it ends with what the device was worth kept.
TEST_F(ScheduledPtz, AutomaticallyADeviceIsStartedForManyBytesOnly) {
  const std::string path = ::testing::TempDir() + "ptxkit_ptz_rates." + std::to_string(::getpid());
  auto asked = request("auto", Policy::automatic);
  asked.calibration_path = path;
  for (const std::optional<uint64_t> bytes : {std::optional<uint64_t>(), std::optional<uint64_t>(raw_.size())}) {
    asked.raw_bytes = bytes;
    expect_right(PtzCodec::lzr, round_trip(PtzCodec::lzr, asked));
    EXPECT_EQ(state_.calls["cuInit"], 0);
    EXPECT_TRUE(notices_.empty());
  }
  asked.raw_bytes = uint64_t{1} << 50;
  expect_right(PtzCodec::lzr, round_trip(PtzCodec::lzr, asked));
  EXPECT_EQ(state_.calls["cuInit"], 1);
  EXPECT_GT(state_.calls["cuLaunchKernel"], 0);
  const auto rates = load_block_rates(block_rates_path(path));
  std::filesystem::remove(block_rates_path(path));
  ASSERT_TRUE(rates);
  EXPECT_THAT(rates->device, HasSubstr("Emulated GPU"));
  EXPECT_GT(rates->rates.at("lzr compress")[1], 0);
  asked.cuda_library = "/nowhere/libcuda.so";
  notices_.clear();
  expect_right(PtzCodec::lzr, round_trip(PtzCodec::lzr, asked));
  EXPECT_THAT(notices_, ::testing::ElementsAre("-v using the CPU: no NVIDIA driver is installed"));
}

// What the device's own clock says of a batch of LZ4, through the scheduler too.
TEST_F(ScheduledPtz, ABatchKnowsWhatTheDeviceTookForIt) {
  std::vector<CompressItem> items(3);
  ByteVector output(raw_.size());
  for (size_t i = 0; i < items.size(); ++i) {
    items[i].raw = Bytes(raw_).subspan(i * 4096, 4096);
    items[i].output = MutableBytes(output).subspan(i * 4096, 4096);
  }
  for (const auto& [name, measures] : {std::pair("cuda", true), std::pair("auto", true), std::pair("auto", false)}) {
    auto asked = request(name, Policy::gpu);
    asked.limits.measures_times = measures;
    const auto backend = select_backend(asked, executor_).value();
    const auto begin = std::chrono::steady_clock::now();
    const auto batch = backend->begin_compress(items, Encoder::reproducible);
    ASSERT_TRUE(batch->finish());
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    const DeviceTimes times = batch->device_times();
    for (const double seconds : {times.h2d, times.kernel, times.d2h}) EXPECT_EQ(seconds > 0, measures);
    EXPECT_LT(times.h2d + times.kernel + times.d2h, wall.count());  // there is one queue's worth of work
  }
}

// A queue has events for fewer than 1,000 calls; later calls of the same kind count with the last one.
TEST_F(ScheduledPtz, TheTimesCoverMoreCallsThanThereAreEvents) {
  scheduler::Trace trace;
  auto driver = driver::Driver::open(EMULATED_CUDA);
  ASSERT_TRUE(driver);
  auto context = driver::Context::create(*driver, 0);
  ASSERT_TRUE(context);
  auto machine = make_cuda_machine(std::move(*context), kernels::find_kernel_image, {.trace = &trace});
  ASSERT_TRUE(machine);
  const Region region{.name = "bytes", .size_bytes = 1024};
  ASSERT_TRUE((*machine)->arrange(0, {&region, 1}));
  for (int call = 0; call < 1000; ++call) ASSERT_TRUE((*machine)->upload(0, 0));
  const double before_last = trace.now();
  ASSERT_TRUE((*machine)->upload(0, 0));
  ASSERT_TRUE((*machine)->wait(0));
  double end = 0;
  for (const auto& span : trace.spans()) end = std::max(end, span.end);
  EXPECT_GT(end, before_last);
  EXPECT_GT((*machine)->take_times(0).h2d, 0);
}

TEST_F(ScheduledPtz, ATraceHasStagesOfBatchesAndCallsOfTheDevice) {
  scheduler::Trace trace;
  auto asked = request("auto", Policy::gpu);
  asked.limits.trace = &trace;
  const auto coder = select_block_coder(asked, executor_).value();
  ASSERT_TRUE(packed(PtzCodec::lzr, coder.get(), {.stop = {}, .trace = &trace}));
  const double end = trace.now();
  std::set<std::string> on_host, on_device;
  const auto lines = trace.lines();
  for (const auto& span : trace.spans()) {
    EXPECT_LE(0, span.begin);
    EXPECT_LE(span.begin, span.end);
    EXPECT_LE(span.end, end);
    (lines[span.line].process == scheduler::kHostProcess ? on_host : on_device).insert(span.name);
  }
  EXPECT_THAT(on_host, ::testing::IsSupersetOf({"read", "begin", "finish", "write", "wait for a batch"}));
  EXPECT_THAT(on_device, ::testing::ElementsAre("copy down", "copy up", "kernels"));
}

}  // namespace
}  // namespace ptxkit::codec
