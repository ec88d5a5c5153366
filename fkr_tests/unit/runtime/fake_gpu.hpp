// The fake driver in a test: its state, a fresh one for each test, and images that it takes.
#pragma once

#include <list>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include "fkr_tests/unit/runtime/fake_cuda.hpp"
#include "kernels/images.hpp"
#include "kernels/lz4/abi.hpp"
#include "runtime/driver/context.hpp"

namespace ptxkit::testing {

inline FakeCuda& fake_cuda(const char* library = FAKE_CUDA) {
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << ::dlerror();
  return *reinterpret_cast<FakeCuda* (*)()>(::dlsym(handle, "fake_cuda_state"))();
}

class FakeGpu : public ::testing::Test {
 protected:
  FakeGpu() : state_(fake_cuda()) { state_ = FakeCuda{}; }
  ~FakeGpu() override {
    EXPECT_EQ(state_.device_bytes, 0);
    EXPECT_EQ(state_.pinned_bytes, 0);
    EXPECT_EQ(state_.streams + state_.events + state_.modules + state_.contexts + state_.graphs, 0)
        << "something was not released";
  }
  void inject(const char* function, int call, int code) {
    state_.failing_function = function;
    state_.failing_call = call;
    state_.failing_code = code;
  }
  driver::ContextPointer context() {
    auto driver = driver::Driver::open(FAKE_CUDA);
    EXPECT_TRUE(driver.has_value());
    return driver::Context::create(*driver, 0).value();
  }

  FakeCuda& state_;
};

// An image whose "PTX" is its name and whose verdict is good.
class FakeImages {
 public:
  FakeImages() {
    using kernels::KernelParameter, kernels::ParameterType;
    const KernelParameter pointer{"p", ParameterType::pointer, 1}, scalar{"n", ParameterType::u32, 0};
    add(kernels::kLz4CompressPage, kernels::kLz4CompressPageShape.block_threads,
        {pointer, pointer, pointer, pointer, pointer, scalar, scalar, scalar});
    for (const auto name : {kernels::kLz4CompressChunk, kernels::kLz4CompressHigh}) {
      add(name, kernels::kLz4CompressChunkShape.block_threads,
          {pointer, pointer, pointer, pointer, pointer, scalar, scalar, scalar});
    }
    add(kernels::kLz4Decompress, kernels::kLz4DecompressShape.block_threads,
        {pointer, pointer, pointer, pointer, pointer, pointer, pointer, pointer, scalar});
  }
  kernels::KernelImage* find(std::string_view name) {
    for (auto& stored : images_) {
      if (stored.image.name == name) return &stored.image;
    }
    return nullptr;
  }

 private:
  struct Stored {
    std::string hash;
    std::vector<kernels::KernelParameter> parameters;
    kernels::KernelImage image;
  };
  void add(std::string_view name, std::uint32_t block_threads, std::vector<kernels::KernelParameter> parameters) {
    Stored& stored = images_.emplace_back();
    const XXH128_hash_t hash = XXH3_128bits(name.data(), name.size());
    stored.hash = fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
    stored.parameters = std::move(parameters);
    stored.image = {
        name, "sm_90", "release", name, block_threads, stored.parameters, kernels::Verdict{stored.hash, 95, 0, "test"}};
  }
  std::list<Stored> images_;
};

}  // namespace ptxkit::testing
