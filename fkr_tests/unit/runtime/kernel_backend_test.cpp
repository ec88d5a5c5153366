// The kernel backend on the fake GPU: the same bytes as the cpu backend, no device-wide calls and no allocation in
// steady state, every injected failure reported or survived.
#include "runtime/backend/kernels/kernel_backend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fkr_tests/corpus.hpp"
#include "fkr_tests/frames.hpp"
#include "fkr_tests/unit/runtime/fake_gpu.hpp"
#include "runtime/backend/cuda/cuda_machine.hpp"
#include "runtime/codec/select_backend.hpp"

namespace ptxkit::codec {
namespace {

using ::testing::HasSubstr;
using ByteVector = std::vector<std::uint8_t>;

class KernelBackend : public testing::FakeGpu {
 protected:
  BackendRequest request(std::string name) {
    BackendRequest request;
    request.name = std::move(name);
    request.policy = Policy::gpu;
    request.find_image = [this](std::string_view kernel, std::uint32_t, std::uint32_t) { return images_.find(kernel); };
    request.notice = [this](const std::string& message, bool) { notices_.push_back(message); };
    request.cuda_library = FAKE_CUDA;
    return request;
  }

  Executor executor_{2};
  testing::FakeImages images_;
  std::vector<std::string> notices_;
  std::unique_ptr<Backend> cpu_ = make_cpu_backend(executor_);
};

TEST_F(KernelBackend, GivesTheSameBytesAsTheCpu) {
  const auto cuda = select_backend(request("cuda"), executor_).value();
  EXPECT_EQ(cuda->name(), "cuda");
  EXPECT_THAT(cuda->description(), HasSubstr("Fake GPU, sm_90, driver for CUDA 12.8"));
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{5000}, std::size_t{3'000'001}}) {
    const ByteVector raw = testing::mixed_content(size);
    for (int size_id = 4; size_id <= 7; ++size_id) {
      const ByteVector frame = testing::compress_frame(*cuda, raw, size_id).value();
      EXPECT_EQ(frame, testing::compress_frame(*cpu_, raw, size_id).value());
      EXPECT_EQ(testing::decompress_frame(*cuda, frame).value(), raw);
    }
  }
}

TEST_F(KernelBackend, ManySlicesKeepTheirOrder) {
  // More slices than queues.
  const auto cuda = select_backend(request("cuda"), executor_).value();
  ByteVector raw = testing::matchable_bytes(1 << 20, 3);
  for (int i = 0; i < 9; ++i) raw.insert(raw.end(), raw.begin(), raw.begin() + (1 << 20));
  std::vector<ByteVector> outputs(16, ByteVector(raw.size()));
  std::vector<CompressItem> items(16);
  for (std::size_t i = 0; i < items.size(); ++i) {
    raw[i] = static_cast<std::uint8_t>(i);
    items[i].raw = Bytes(raw).first(raw.size() - i * 1000);
    items[i].output = outputs[i];
  }
  ASSERT_TRUE(cuda->compress(items, Encoder::reproducible));
  EXPECT_GE(state_.calls["cuLaunchKernel"], 5);
  std::vector<ByteVector> decoded(items.size());
  std::vector<DecompressItem> back(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    ASSERT_EQ(items[i].flag, ChunkFlag::compressed);
    decoded[i].resize(items[i].raw.size());
    back[i].block = Bytes(outputs[i]).first(items[i].compressed_bytes);
    back[i].output = decoded[i];
  }
  ASSERT_TRUE(cuda->decompress(back));
  for (std::size_t i = 0; i < items.size(); ++i) {
    ASSERT_EQ(back[i].status, ItemStatus::ok);
    EXPECT_TRUE(std::equal(decoded[i].begin(), decoded[i].end(), items[i].raw.begin())) << i;
  }
}

TEST_F(KernelBackend, SteadyStateAllocatesNothing) {
  const auto cuda = select_backend(request("cuda"), executor_).value();
  const ByteVector raw = testing::mixed_content(2'000'000);
  const auto cycle = [&] {
    ASSERT_TRUE(testing::decompress_frame(*cuda, testing::compress_frame(*cuda, raw).value()).has_value());
  };
  // The slices of one batch go to queues in turn, so after a few batches each queue has met its largest.
  for (int i = 0; i < 4; ++i) cycle();
  const auto before = state_.calls;
  for (int i = 0; i < 4; ++i) cycle();
  for (const char* call :
       {"cuMemAlloc_v2", "cuMemFree_v2", "cuMemHostAlloc", "cuMemFreeHost", "cuModuleLoadDataEx", "cuStreamCreate"}) {
    const auto old = before.find(call);
    EXPECT_EQ(state_.calls[call], old == before.end() ? 0 : old->second) << call;
  }
}

TEST_F(KernelBackend, BadBlocksHaveTheirStatusFromTheKernel) {
  const auto cuda = select_backend(request("cuda"), executor_).value();
  const ByteVector good = {0x10, 'x'}, offset_zero = {0x10, 'x', 0, 0, 0x50, 1, 2, 3, 4, 5};
  ByteVector room[2] = {ByteVector(9), ByteVector(99)};
  std::vector<DecompressItem> items(2);
  items[0].block = good;
  items[1].block = offset_zero;
  for (int i = 0; i < 2; ++i) items[i].output = room[i];
  ASSERT_TRUE(cuda->decompress(items));
  EXPECT_EQ(items[0].status, ItemStatus::ok);
  EXPECT_EQ(room[0][0], 'x');
  EXPECT_EQ(items[1].status, ItemStatus::offset_zero);
}

TEST_F(KernelBackend, WhatItLacksItRefuses) {
  const auto cuda = select_backend(request("cuda"), executor_).value();
  ByteVector raw(100, 'x'), out(100);
  CompressItem item;
  item.raw = raw;
  item.output = out;
  EXPECT_THAT(cuda->compress({&item, 1}, Encoder::fast).error().what,
              HasSubstr("the cuda backend lacks the fast encoder"));
  item.history = raw;
  EXPECT_THAT(cuda->compress({&item, 1}, Encoder::reproducible).error().what,
              HasSubstr("lacks compression of linked blocks"));
  DecompressItem back;
  back.block = back.history = raw;
  back.output = out;
  EXPECT_THAT(cuda->decompress({&back, 1}).error().what, HasSubstr("lacks decompression of linked blocks"));
}

TEST_F(KernelBackend, EveryInjectedFailureIsAnErrorForCudaAndAFallbackForAuto) {
  const ByteVector raw = testing::mixed_content(300'000);
  const ByteVector frame = testing::compress_frame(*cpu_, raw).value();
  for (const auto& [function, code] :
       {std::pair("cuStreamSynchronize", 716), std::pair("cuStreamSynchronize", 700), std::pair("cuLaunchKernel", 719),
        std::pair("cuLaunchKernel", 701), std::pair("cuMemAlloc_v2", 2), std::pair("cuMemHostAlloc", 2),
        std::pair("cuModuleLoadDataEx", 218), std::pair("cuModuleGetFunction", 500),
        std::pair("cuMemcpyHtoDAsync_v2", 999), std::pair("cuMemcpyDtoHAsync_v2", 700)}) {
    state_ = testing::FakeCuda{};
    inject(function, 1, code);
    {
      const auto cuda = select_backend(request("cuda"), executor_).value();
      const auto failed = testing::compress_frame(*cuda, raw);
      ASSERT_FALSE(failed.has_value()) << function;
      EXPECT_THAT(failed.error().message(), HasSubstr(std::string(driver::explain(code).name))) << function;
    }
    state_.calls.clear();
    notices_.clear();
    const auto lenient = select_backend(request("auto"), executor_).value();
    EXPECT_EQ(testing::compress_frame(*lenient, raw).value(), frame) << function;
    EXPECT_EQ(testing::decompress_frame(*lenient, frame).value(), raw) << function;
    ASSERT_EQ(notices_.size(), 1u) << function;
    EXPECT_THAT(notices_[0], HasSubstr("continuing on the CPU: "));
  }
}

TEST_F(KernelBackend, AutoWithoutAGpuUsesTheCpuAndSaysWhy) {
  for (const auto& [version, devices, expected] :
       {std::tuple(10020, 1, "too old"), std::tuple(12080, 0, "CUDA_ERROR_NO_DEVICE")}) {
    state_ = testing::FakeCuda{};
    state_.driver_version = version;
    state_.device_count = devices;
    notices_.clear();
    EXPECT_EQ(select_backend(request("auto"), executor_).value()->name(), "cpu");
    ASSERT_EQ(notices_.size(), 1u);
    EXPECT_THAT(notices_[0], HasSubstr(expected));
    EXPECT_THAT(select_backend(request("cuda"), executor_).error().message(), HasSubstr(expected));
  }
}

TEST_F(KernelBackend, AnImageWithoutAVerdictNeverRuns) {
  images_.find(kernels::kLz4CompressChunk)->verdict.reset();
  const auto cuda = select_backend(request("cuda"), executor_).value();
  EXPECT_THAT(testing::compress_frame(*cuda, testing::mixed_content(100'000)).error().message(),
              HasSubstr("expected a verdict of the analyzer"));
  EXPECT_EQ(state_.calls["cuLaunchKernel"], 0);
  auto missing = request("cuda");
  missing.find_image = [](std::string_view, std::uint32_t, std::uint32_t) { return nullptr; };
  EXPECT_THAT(testing::compress_frame(*select_backend(missing, executor_).value(), testing::mixed_content(100'000))
                  .error()
                  .what,
              HasSubstr("there is no image of kernel lz4_compress_chunk for sm_90"));
}

}  // namespace
}  // namespace ptxkit::codec
