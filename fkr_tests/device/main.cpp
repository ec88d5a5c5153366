// device_tests: all tests that need a GPU, in one program that can be carried to a machine with a driver. With --probe
// or --crash it runs one kernel in a process of its own, because a misaligned access destroys its context.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "fkr_tests/device/crash.hpp"
#include "fkr_tests/device/device.hpp"
#include "fkr_tests/device/probe.hpp"

namespace ptxkit::testing {
namespace {

tl::expected<driver::ContextPointer, std::string> find_device() {
  auto driver = driver::Driver::open();
  if (!driver) return tl::unexpected(driver.error().error.message());
  const char* chosen = std::getenv("PTXKIT_DEVICE");
  auto context = driver::Context::create(std::move(*driver), chosen != nullptr ? std::atoi(chosen) : 0);
  if (!context) return tl::unexpected(context.error().message());
  std::printf("device: %s, sm_%u%u, driver for CUDA %d.%d\n", (*context)->info().name.c_str(), (*context)->info().major,
              (*context)->info().minor, (*context)->driver().version() / 1000,
              (*context)->driver().version() % 1000 / 10);
  return std::move(*context);
}

}  // namespace

const tl::expected<driver::ContextPointer, std::string>& device() {
  static const auto found = find_device();
  return found;
}

Result<std::vector<uint8_t>> run_in_out(const std::string& ptx, const std::string& entry, uint32_t threads,
                                        std::span<const uint8_t> in, size_t out_bytes) {
  using driver::LaunchArgument;
  using kernels::ParameterType;
  const driver::LaunchContract contract{
      entry, threads, {{"in", ParameterType::pointer, 256}, {"out", ParameterType::pointer, 256}}};
  auto kernel = driver::Kernel::load_unverified(*device(), ptx, contract, 1);
  if (!kernel) return tl::unexpected(kernel.error());
  auto stream = driver::Stream::create(*device());
  auto from = driver::DeviceMemory::allocate(*device(), in.size()),
       to = driver::DeviceMemory::allocate(*device(), out_bytes);
  if (!stream || !from || !to) return fail("no memory for the launch");
  const LaunchArgument arguments[] = {LaunchArgument::of(from->as<uint8_t>()), LaunchArgument::of(to->as<uint8_t>())};
  std::vector<uint8_t> out(out_bytes);
  for (auto& step : {from->upload(in, *stream), to->fill(0, *stream), kernel->launch(*stream, 1, threads, arguments),
                     to->download(out, *stream), stream->wait()})
    if (!step) return tl::unexpected(step.error());
  return out;
}

}  // namespace ptxkit::testing

constexpr int kSkippedExitCode = 77;

int main(int argc, char** argv) {
  if (argc == 5 && std::string_view(argv[1]) == "--probe") {
    return ptxkit::testing::probe_main(argv[2], std::atoi(argv[3]), std::atoi(argv[4]));
  }
  if (argc == 3 && std::string_view(argv[1]) == "--crash") return ptxkit::testing::crash_main(std::atoi(argv[2]));
  const bool runs_all = argc == 1;
  ::testing::InitGoogleTest(&argc, argv);
  if (runs_all && !ptxkit::testing::device()) {
    std::printf("SKIPPED: %d tests need a GPU: %s\n", ::testing::UnitTest::GetInstance()->total_test_count(),
                ptxkit::testing::device().error().c_str());
    return kSkippedExitCode;
  }
  return RUN_ALL_TESTS();
}
