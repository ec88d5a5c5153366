// Tests that the driver is opened, that its objects have owners, and that invalid loads and launches are refused.
#include "runtime/driver/driver.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fkr_tests/cases/cuda/fake_cuda.hpp"
#include "fkr_tests/cases/cuda/fake_gpu.hpp"
#include "kernels/abi.hpp"
#include "kernels/images.hpp"
#include "runtime/driver/context.hpp"
#include "runtime/driver/error_catalogue.hpp"
#include "runtime/driver/launch_contract.hpp"

namespace ptxkit::driver {
namespace {

using testing::FakeGpu;
using testing::FakeImages;
using ::testing::HasSubstr;

TEST(DriverOpen, AMissingLibraryIsNormal) {
  const auto driver = Driver::open("/nowhere/libcuda.so.1");
  ASSERT_FALSE(driver.has_value());
  EXPECT_EQ(driver.error().absence, Absence::not_installed);
  EXPECT_THAT(driver.error().error.message(), HasSubstr("no NVIDIA driver: /nowhere/libcuda.so.1"));
}

TEST(DriverOpen, MissingFunctionsAreNamedTogether) {
  const auto driver = Driver::open(FAKE_CUDA_INCOMPLETE);
  ASSERT_FALSE(driver.has_value());
  EXPECT_EQ(driver.error().absence, Absence::broken);
  EXPECT_EQ(driver.error().error.what, "the driver lacks functions that are needed: cuLaunchKernel");
}

TEST_F(FakeGpu, OpensAndDescribes) {
  const auto here = context();
  EXPECT_EQ(here->info().name, "Fake GPU");
  EXPECT_EQ(here->info().major, 9u);
  EXPECT_EQ(here->driver().version(), 12080);
}

TEST_F(FakeGpu, AnOldDriverIsRefused) {
  state_.driver_version = 10020;
  const auto driver = Driver::open(FAKE_CUDA);
  EXPECT_EQ(driver.error().absence, Absence::broken);
  EXPECT_THAT(driver.error().error.what, HasSubstr("too old: expected one for CUDA 11.0 or later, found 10.2"));
}

TEST_F(FakeGpu, NoDeviceAndFailingInitialisationAreExplained) {
  state_.device_count = 0;
  EXPECT_THAT(Driver::open(FAKE_CUDA).error().error.what, HasSubstr("CUDA_ERROR_NO_DEVICE"));
  for (const auto& [function, code] :
       {std::pair("cuInit", 803), std::pair("cuDriverGetVersion", 999), std::pair("cuDeviceGetCount", 304)}) {
    state_ = testing::FakeCuda{};
    inject(function, 1, code);
    const auto driver = Driver::open(FAKE_CUDA);
    ASSERT_FALSE(driver.has_value());
    EXPECT_THAT(driver.error().error.what, HasSubstr(std::string(explain(code).name)));
    EXPECT_THAT(driver.error().error.what, HasSubstr(function));
  }
}

TEST_F(FakeGpu, EveryFailureWhileMakingAContextIsReported) {
  const auto driver = Driver::open(FAKE_CUDA).value();
  EXPECT_THAT(Context::create(driver, 1).error().what, HasSubstr("there is no device 1: expected a number below 1"));
  EXPECT_FALSE(Context::create(driver, -1).has_value());
  for (const char* function :
       {"cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute", "cuDeviceTotalMem_v2", "cuDevicePrimaryCtxRetain"}) {
    state_ = testing::FakeCuda{};
    inject(function, 1, 46);
    const auto context = Context::create(driver, 0);
    ASSERT_FALSE(context.has_value()) << function;
    EXPECT_THAT(context.error().what, HasSubstr("CUDA_ERROR_DEVICE_UNAVAILABLE")) << function;
  }
}

TEST_F(FakeGpu, MemoryMovesThroughStreamsAndEvents) {
  const auto here = context();
  const Stream stream = Stream::create(here).value();
  const Event begin = Event::create(here).value(), end = Event::create(here).value();
  DeviceMemory memory = DeviceMemory::allocate(here, 100).value();
  const DeviceMemory moved = std::move(memory);
  const PinnedMemory host = PinnedMemory::allocate(here, 100).value();
  std::fill(host.bytes().begin(), host.bytes().end(), uint8_t{7});
  ASSERT_TRUE(begin.record(stream));
  ASSERT_TRUE(moved.fill(1, stream));
  ASSERT_TRUE(moved.fill(3, stream, 10, 5));
  ASSERT_TRUE(moved.upload(host.bytes().first(50), stream, 50));
  ASSERT_TRUE(moved.download(host.bytes(), stream));
  ASSERT_TRUE(end.record(stream));
  ASSERT_TRUE(end.wait());
  for (const size_t i : {size_t{9}, size_t{15}, size_t{49}}) EXPECT_EQ(host.bytes()[i], 1) << i;
  for (const size_t i : {size_t{10}, size_t{14}}) EXPECT_EQ(host.bytes()[i], 3) << i;
  EXPECT_EQ(host.bytes()[50], 7);
  EXPECT_NEAR(end.seconds_since(begin).value(), 0.0025, 1e-9);
  EXPECT_EQ(moved.as<uint32_t>().address + 8, (moved.as<uint32_t>() + 2).address);
}

TEST_F(FakeGpu, FailuresNameTheCallAndTheDevice) {
  const auto here = context();
  inject("cuMemAlloc_v2", 1, 2);
  const auto memory = DeviceMemory::allocate(here, 12345);
  EXPECT_THAT(memory.error().message(), HasSubstr("device 0, Fake GPU: cuMemAlloc: error 2, CUDA_ERROR_OUT_OF_MEMORY"));
  EXPECT_THAT(memory.error().message(), HasSubstr("12345 bytes were asked for"));
  inject("cuStreamCreate", 1, 304);
  EXPECT_FALSE(Stream::create(here).has_value());
  inject("cuEventCreate", 1, 304);
  EXPECT_FALSE(Event::create(here).has_value());
  inject("cuMemHostAlloc", 1, 2);
  EXPECT_FALSE(PinnedMemory::allocate(here, 10).has_value());
}

TEST(Verdict, OnlyAGoodOneForThisTextIsEnough) {
  FakeImages images;
  kernels::KernelImage image = *images.find(kernels::kLz4Decompress);
  EXPECT_TRUE(check_verdict(image));
  const auto why = [](const kernels::KernelImage& bad) { return check_verdict(bad).error().message(); };
  kernels::KernelImage bad = image;
  bad.ptx = "another text";
  EXPECT_THAT(why(bad), HasSubstr("kernel lz4_decompress for sm_90, release: the verdict is for another text"));
  bad = image;
  bad.verdict.reset();
  EXPECT_THAT(why(bad), HasSubstr("expected a verdict of the analyzer, found none; judge the text with ptx-debug"));
  bad = image;
  bad.verdict->score = 89;
  EXPECT_THAT(why(bad), HasSubstr("expected a score of 90 or more, found 89"));
  bad.verdict->score = 90;
  EXPECT_TRUE(check_verdict(bad));
  bad.verdict->critical_count = 1;
  EXPECT_THAT(why(bad), HasSubstr("expected no critical finding, found 1"));
}

TEST_F(FakeGpu, LoadingNeedsTheVerdictAndLoadUnverifiedDoesNot) {
  FakeImages images;
  kernels::KernelImage image = *images.find(kernels::kLz4Decompress);
  const auto here = context();
  EXPECT_TRUE(Kernel::load(here, image));
  image.verdict.reset();
  EXPECT_FALSE(Kernel::load(here, image));
  EXPECT_EQ(state_.calls["cuModuleLoadDataEx"], 1) << "an image without a verdict must not reach the driver";
  EXPECT_TRUE(Kernel::load_unverified(here, "probe", {"probe", 32, {}}));
}

TEST_F(FakeGpu, TheCompilersLogAndAMissingEntryAreShown) {
  const auto here = context();
  auto kernel = Kernel::load_unverified(here, "syntax error here", {"probe", 32, {}});
  EXPECT_THAT(kernel.error().message(), HasSubstr("CUDA_ERROR_INVALID_PTX"));
  EXPECT_THAT(kernel.error().message(), HasSubstr("the compiler's log: ptxas: line 3: syntax error"));
  EXPECT_THAT(kernel.error().where, HasSubstr("kernel probe"));
  kernel = Kernel::load_unverified(here, "other", {"probe", 32, {}});
  EXPECT_THAT(kernel.error().message(), HasSubstr("CUDA_ERROR_NOT_FOUND"));
}

TEST_F(FakeGpu, AnyGeometryIsLaunchedAndItsFailureSaysWhichKernel) {
  const auto here = context();
  auto kernel = Kernel::load_unverified(here, "anything", {"anything", 0, {}}).value();
  auto stream = Stream::create(here).value();
  const LaunchGeometry geometry{{2, 3, 4}, {5, 6, 7}, 100 << 10, {1, 1, 1}};
  const std::vector<std::vector<std::byte>> arguments{std::vector<std::byte>(3)};
  EXPECT_TRUE(kernel.launch_unchecked(stream, geometry, arguments));
  EXPECT_EQ(state_.calls["cuFuncSetAttribute"], 1) << "more than 48 KiB have to be asked for";
  EXPECT_TRUE(kernel.launch_unchecked(stream, {}, arguments));
  EXPECT_EQ(state_.calls["cuFuncSetAttribute"], 1);
  EXPECT_TRUE(kernel.launch_unchecked(stream, {{2, 3, 4}, {5, 6, 7}, 0, {2, 1, 1}}, arguments));
  EXPECT_EQ(state_.calls["cuLaunchKernelEx"], 1);
  inject("cuLaunchKernel", 3, 1);
  EXPECT_THAT(kernel.launch_unchecked(stream, {}, arguments).error().message(), HasSubstr("kernel anything"));
  EXPECT_TRUE(stream.is_done().value());
  inject("cuStreamQuery", 2, 600);
  EXPECT_FALSE(stream.is_done().value());
}

TEST_F(FakeGpu, LaunchesAreCheckedAgainstTheContract) {
  using kernels::ParameterType;
  const auto here = context();
  const Stream stream = Stream::create(here).value();
  const LaunchContract contract{
      "probe",
      64,
      {{"out", ParameterType::pointer, 16}, {"count", ParameterType::u32, 0}, {"size", ParameterType::u64, 0}}};
  const LaunchContract scales{"scale", 64, {{"factor", ParameterType::f32, 0}, {"step", ParameterType::i32, 0}}};
  const Kernel kernel = Kernel::load_unverified(here, "probe", contract).value();
  const LaunchArgument out = LaunchArgument::of(DevicePointer<float>{0x1000}), count = LaunchArgument::of(uint32_t{3}),
                       size = LaunchArgument::of(uint64_t{3});
  const auto why = [&](uint32_t grid, uint32_t block, std::vector<LaunchArgument> arguments) {
    auto launched = kernel.launch(stream, grid, block, arguments);
    return launched ? "" : launched.error().message();
  };
  EXPECT_EQ(why(1, 64, {out, count, size}), "");
  EXPECT_EQ(why(1, 32, {out, count, size}),
            "launch of probe: expected blocks of 64 threads, as the kernel's .reqntid has it, found 32");
  EXPECT_EQ(why(0, 64, {out, count, size}), "launch of probe: expected a grid of at least one block, found 0");
  EXPECT_EQ(why(1, 64, {out, count}), "launch of probe: expected 3 arguments, found 2");
  EXPECT_EQ(why(1, 64, {out, size, size}),
            "launch of probe: parameter 1 (count): expected a 4-byte scalar, found an 8-byte scalar");
  EXPECT_EQ(why(1, 64, {count, count, size}),
            "launch of probe: parameter 0 (out): expected a pointer, found a 4-byte scalar");
  EXPECT_EQ(why(1, 64, {LaunchArgument::of(DevicePointer<float>{0x1008}), count, size}),
            "launch of probe: parameter 0 (out): expected an address aligned to 16 bytes, found 0x1008");
  EXPECT_EQ(state_.calls["cuLaunchKernel"], 1);
  EXPECT_TRUE(check_launch(scales, 1, 64, std::array{LaunchArgument::of(2.0f), LaunchArgument::of(-1)}));
  EXPECT_EQ(check_launch(scales, 1, 64, std::array{LaunchArgument::of(2.0), LaunchArgument::of(-1)}).error().message(),
            "launch of scale: parameter 0 (factor): expected a float, found a double");
  EXPECT_EQ(check_launch(scales, 1, 64, std::array{LaunchArgument::of(2.0f), count}).error().message(),
            "launch of scale: parameter 1 (step): expected a signed 4-byte scalar, found a 4-byte scalar");
  EXPECT_EQ(LaunchArgument::of(2.0f).size_bytes(), 4u);
  EXPECT_EQ(LaunchArgument::of(int64_t{-1}).size_bytes(), 8u);
  inject("cuLaunchKernel", 2, 701);
  EXPECT_THAT(why(1, 64, {out, count, size}), HasSubstr("Fake GPU, kernel probe: cuLaunchKernel: error 701"));
  const KernelResources resources = kernel.resources().value();
  EXPECT_EQ(resources.max_block_threads, 10u);
  EXPECT_EQ(resources.registers, 50u);
}

}  // namespace
}  // namespace ptxkit::driver
