// Tensor copies and changed tensor maps: the emulator's bits must be the GPU's.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

#include "fkr_tests/device/device.hpp"
#include "fkr_tests/device/form_cases.hpp"
#include "fkr_tests/device/tensor_cases.hpp"
#include "runtime/launch/gpu_tensor_map.hpp"

namespace ptxkit::testing {
namespace {

// The box and then the tensor, after a run on the GPU.
Result<std::vector<uint8_t>> run_tensor(const TensorCase& each) {
  auto kernel = driver::Kernel::load_unverified(*device(), each.ptx, {"tensor", 0, {}});
  if (!kernel) return tl::unexpected(kernel.error());
  const auto stream = driver::Stream::create(*device());
  const auto data = driver::DeviceMemory::allocate(*device(), each.tensor.size()),
             out = driver::DeviceMemory::allocate(*device(), kTensorOutBytes);
  if (!stream || !data || !out) return fail("no memory for the launch");
  emulator::TensorMap map = each.map;
  map.address = data->handle();
  const auto encoded = driver_tensor_map(**device(), map);
  if (!encoded) return tl::unexpected(encoded.error());
  const auto argument = [](uint64_t address) {
    const auto bytes = std::as_bytes(std::span(&address, 1));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const std::vector<std::vector<std::byte>> arguments{*encoded, argument(out->handle()), argument(data->handle())};
  std::vector<uint8_t> bytes(kTensorTileBytes + each.tensor.size());
  const std::span view(bytes);
  for (const auto& step : {data->upload(each.tensor, *stream), out->fill(0, *stream),
                           kernel->launch_unchecked(*stream, {.block = {128, 1, 1}}, arguments),
                           out->download(view.first(kTensorTileBytes), *stream),
                           data->download(view.subspan(kTensorTileBytes), *stream), stream->wait()})
    if (!step) return tl::unexpected(step.error());
  return bytes;
}

// The first difference, with the 32 bytes there.
std::string difference(const std::vector<uint8_t>& real, const std::vector<uint8_t>& emulated) {
  const auto place = static_cast<size_t>(std::ranges::mismatch(real, emulated).in1 - real.begin()) & ~size_t{15};
  size_t count = 0;
  for (size_t i = 0; i < real.size(); ++i) count += real[i] != emulated[i];
  const auto part = [&](const std::vector<uint8_t>& bytes) {
    return std::span(bytes).subspan(place, std::min<size_t>(32, bytes.size() - place));
  };
  return fmt::format("{} bytes differ, the first at {}:\n{:02x}, emulated\n{:02x}", count, place,
                     fmt::join(part(real), ""), fmt::join(part(emulated), ""));
}

class DeviceTensors : public ::testing::TestWithParam<TensorCase> {};

// Each case is a test of its own, since a failure on the GPU destroys the context.
TEST_P(DeviceTensors, TheEmulatorsBitsAreTheDevices) {
  PTXKIT_REQUIRE_DEVICE();
  if ((*device())->info().major < 9) GTEST_SKIP() << "tensor copies are of compute capability 9.0 and later";
  const TensorCase& each = GetParam();
  const auto real = run_tensor(each), emulated = emulate_tensor(each);
  ASSERT_TRUE(real) << real.error().message();
  ASSERT_TRUE(emulated) << emulated.error().message();
  EXPECT_TRUE(*real == *emulated) << difference(*real, *emulated);
  if (const char* file = std::getenv("PTXKIT_RECORD_TENSORS"))
    std::ofstream(file, std::ios::app) << fmt::format("{:016x} {}\n", form_hash(*real), each.name);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceTensors, ::testing::ValuesIn(tensor_cases()), [](const auto& each) {
  std::string name = each.param.name;
  std::ranges::replace_if(name, [](unsigned char letter) { return !std::isalnum(letter); }, '_');
  return fmt::format("{}_{}", each.index, name);
});

}  // namespace
}  // namespace ptxkit::testing
