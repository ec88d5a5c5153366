// A stream through the scheduler, on a driver whose GPU is the emulator.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/cuda/fake_cuda.hpp"
#include "fkr_tests/cases/cuda/fake_gpu.hpp"
#include "kernels/images.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/codec/threads/ledger.hpp"

namespace ptxkit::codec {

class ScheduledStreams : public ::testing::Test {
 protected:
  using ByteVector = std::vector<uint8_t>;

  ScheduledStreams() : state_(testing::fake_cuda(EMULATED_CUDA)) { state_ = testing::FakeCuda{}; }

  std::unique_ptr<BlockCoder> coder(const std::string& name, Policy policy) {
    BackendRequest request;
    request.name = name;
    request.policy = policy;
    request.find_image = kernels::find_kernel_image;
    request.cuda_library = EMULATED_CUDA;
    request.copy_executor = &copies_;
    request.notice = [this](const std::string& message, bool) {
      const std::lock_guard lock(mutex_);
      notices_.push_back(message);
    };
    return select_block_coder(request, executor_).value();
  }
  void inject(const std::string& function, int call, int code) {
    state_ = testing::FakeCuda{};
    notices_.clear();
    state_.failing_function = function;
    state_.failing_call = call;
    state_.failing_code = code;
  }
  bool has_launched() { return state_.calls["cuLaunchKernel"] != 0; }

  using Files = std::pair<ByteVector, std::string>;  // what has been written, and the error that ended it

  // Every way decodes `file`, which the CPU has written, to raw_. `unpack`: (file, coder) -> Files.
  template <class Unpack>
  void expect_decoded_on_every_side(const ByteVector& file, const Unpack& unpack) {
    for (const auto& [name, policy, uses_driver] : kWays) {
      state_ = testing::FakeCuda{};
      const auto of = coder(name, policy);
      const auto [content, error] = unpack(file, of.get());
      EXPECT_TRUE(content == raw_) << name << error;
      EXPECT_EQ(has_launched(), uses_driver) << name;
      EXPECT_TRUE(notices_.empty());
    }
  }
  // With a byte of `good` damaged at each of `places`, kernels end with the content and the error of the CPU.
  template <class Unpack>
  void expect_verdicts_of_the_cpu(const ByteVector& good, const std::vector<size_t>& places, const Unpack& unpack) {
    for (const size_t at : places) {
      ByteVector file = good;
      file[at] ^= 0x10;
      const auto [expected, error] = unpack(file, nullptr);
      EXPECT_NE(error, "");
      for (const char* name : {"cuda", "emulator"}) {
        const auto of = coder(name, Policy::gpu);
        const auto found = unpack(file, of.get());
        EXPECT_EQ(found.second, error) << at;
        EXPECT_TRUE(found.first == expected) << at;
      }
    }
  }
  // Each function of the driver fails once, while a file is written by `pack`: (coder) -> Result<ByteVector>, and while
  // `of_cpu` is read.
  template <class Pack, class Unpack>
  void expect_content_in_spite_of_failures(const ByteVector& of_cpu, const Pack& pack, const Unpack& unpack) {
    inject("", 0, 0);
    ASSERT_TRUE(pack(*coder("cuda", Policy::gpu)));
    for (const auto& [function, count] : std::map(state_.calls)) {
      for (const int code : {2, 719}) {
        SCOPED_TRACE(function);
        for (const Policy policy : {Policy::gpu, Policy::mixed}) {
          inject(function, (count + 1) / 2, code);
          const auto to_encode = coder("auto", policy);
          const auto file = pack(*to_encode);
          EXPECT_TRUE(unpack(file.value(), nullptr).first == raw_);
          inject(function, 1, code);
          const auto to_decode = coder("auto", policy);
          EXPECT_TRUE(unpack(of_cpu, to_decode.get()).first == raw_);
          EXPECT_LE(notices_.size(), 1u);
        }
      }
    }
  }
  // Writing with `pack`: (coder, limits) -> Result<ByteVector>, and reading `of_cpu`, stay within `budget`.
  template <class Pack, class Unpack>
  void expect_within(uint64_t budget, const ByteVector& of_cpu, const Pack& pack, const Unpack& unpack) {
    for (const Policy policy : {Policy::gpu, Policy::mixed}) {
      scheduler::Ledger memory("memory", budget);
      const auto of = coder("auto", policy);
      const auto written = pack(*of, StreamLimits{.memory = &memory});
      ASSERT_TRUE(written) << written.error().message();
      EXPECT_TRUE(unpack(*written, nullptr).first == raw_);
      const auto [content, error] = unpack(of_cpu, of.get(), StreamLimits{.memory = &memory});
      EXPECT_TRUE(content == raw_) << error;
      EXPECT_LE(memory.peak_bytes(), budget);
      EXPECT_EQ(memory.reserved_bytes(), 0u);
    }
  }

  // Ways to ask for a coder, and whether kernels run on the driver's device then.
  static constexpr std::tuple<const char*, Policy, bool> kWays[] = {
      {"auto", Policy::cpu, false},      {"auto", Policy::gpu, true},       {"auto", Policy::mixed, true},
      {"cuda", Policy::automatic, true}, {"cpu", Policy::automatic, false}, {"emulator", Policy::automatic, false}};

  testing::FakeCuda& state_;
  Executor executor_{2}, copies_{1};
  // Two ranges of Zstandard: blocks that shrink, runs, blocks that do not shrink, and a short one.
  const ByteVector raw_ = [] {
    ByteVector raw = testing::matchable_bytes(100'000, 1);
    raw.insert(raw.end(), 360'000, 'x');
    const ByteVector noise = testing::random_bytes(70'000, 2);
    raw.insert(raw.end(), noise.begin(), noise.end());
    raw.insert(raw.end(), raw.begin(), raw.begin() + 20'000);
    return raw;
  }();
  std::mutex mutex_;
  std::vector<std::string> notices_;
};

}  // namespace ptxkit::codec
