// The fake driver in a test: its state, reset for each test, and images that it accepts.
#pragma once

#include <list>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include "fkr_tests/cases/cuda/fake_cuda.hpp"
#include "kernels/abi.hpp"
#include "kernels/images.hpp"
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

// Images whose "PTX" is their name and declarations. Their verdicts are good.
class FakeImages {
 public:
  FakeImages() {
    const std::vector<const char*> compressor = {"src=N", "src_sizes=4", "dst=N", "dst_sizes=4", "flags=1"};
    const std::vector<const char*> strides = {"src_stride_16", "dst_stride_16", "item_count"};
    add(kernels::kLz4CompressPage, kernels::kLz4CompressPageShape.block_threads, compressor, strides);
    for (const auto name : {kernels::kLz4CompressChunk, kernels::kLz4CompressHigh}) {
      add(name, kernels::kLz4CompressChunkShape.block_threads, compressor, strides);
    }
    add(kernels::kLz4Decompress, kernels::kLz4DecompressShape.block_threads,
        {"src=M", "src_offsets=8", "src_sizes=4", "dst=N", "dst_offsets=8", "dst_capacities=4", "dst_sizes=4",
         "statuses=4"},
        {"item_count"});
    add(kernels::kCopyItems, kernels::kCopyItemsShape.block_threads, {"src=N", "offsets=8", "sizes=4", "dst=N"},
        {"item_count"});
  }
  kernels::KernelImage* find(std::string_view name) {
    for (auto& stored : images_) {
      if (stored.image.name == name) return &stored.image;
    }
    return nullptr;
  }

 private:
  struct Stored {
    std::string ptx, hash;
    std::vector<kernels::KernelParameter> parameters;
    kernels::KernelImage image;
  };
  void add(std::string_view name, uint32_t block_threads, const std::vector<const char*>& buffers,
           const std::vector<const char*>& numbers) {
    using kernels::ParameterType;
    Stored& stored = images_.emplace_back();
    for (const std::string_view buffer : buffers) {
      stored.parameters.push_back({buffer.substr(0, buffer.find('=')), ParameterType::pointer, 1});
    }
    for (const std::string_view number : numbers) stored.parameters.push_back({number, ParameterType::u32, 0});
    stored.ptx = fmt::format("// @pz_cost {{\n// threads_per_element: 1\n// buffers: {}\n// }}\n{}\n",
                             fmt::join(buffers, ", "), name);
    const XXH128_hash_t hash = XXH3_128bits(stored.ptx.data(), stored.ptx.size());
    stored.hash = fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
    stored.image = {name,
                    "sm_90",
                    "release",
                    stored.ptx,
                    block_threads,
                    stored.parameters,
                    kernels::Verdict{stored.hash, 95, 0, "test"}};
  }
  std::list<Stored> images_;
};

}  // namespace ptxkit::testing
