// A stream through the scheduler, on a driver whose GPU is the emulator.
#pragma once

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
#include "runtime/codec/threads/executor.hpp"

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
