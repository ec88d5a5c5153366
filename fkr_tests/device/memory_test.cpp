// Every instruction form of memory and synchronisation: the emulator's bits must be the GPU's.
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

#include "fkr_tests/device/device.hpp"
#include "fkr_tests/device/memory_cases.hpp"

namespace ptxkit::testing {
namespace {

Result<std::vector<uint8_t>> run_memory(const MemoryCase& each) {
  auto kernel = driver::Kernel::load_unverified(*device(), each.ptx, {"memory", 0, {}});
  if (!kernel) return tl::unexpected(kernel.error());
  const auto stream = driver::Stream::create(*device());
  const auto in = driver::DeviceMemory::allocate(*device(), each.in.size()),
             out = driver::DeviceMemory::allocate(*device(), each.in.size());
  if (!stream || !in || !out) return fail("no memory for the launch");
  const auto argument = [](const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const std::vector<std::vector<std::byte>> arguments{
      argument(std::array{in->handle()}), argument(std::array{out->handle()}), argument(memory_parameter())};
  std::vector<uint8_t> left(each.in.size());
  for (const auto& step :
       {in->upload(each.in, *stream), out->fill(0, *stream),
        kernel->launch_unchecked(*stream, {.grid = {2, 1, 1}, .block = {each.threads, 1, 1}}, arguments),
        out->download(left, *stream), stream->wait()})
    if (!step) return tl::unexpected(step.error());
  return left;
}

// The first difference in an instruction's bytes.
std::string difference(const MemoryCase& each, size_t section, std::span<const uint8_t> real,
                       std::span<const uint8_t> emulated) {
  const size_t begin = section * each.section_bytes();
  size_t at = begin, count = 0;
  for (size_t i = begin; i < begin + each.section_bytes(); ++i)
    if (real[i] != emulated[i] && count++ == 0) at = i;
  if (count == 0) return {};
  const size_t row = at / 256 * 256, part = at / 16 * 16;
  return fmt::format("{}: {} bytes differ, the first at {} of row {}: GPU {:02x}, emulated {:02x}, in {:02x}\n",
                     each.instructions[section], count, at - row, (row - begin) / 256,
                     fmt::join(real.subspan(part, 16), ""), fmt::join(emulated.subspan(part, 16), ""),
                     fmt::join(std::span(each.in).subspan(row, 256), ""));
}

class DeviceMemoryForms : public ::testing::TestWithParam<std::string> {};

// Each opcode is a test of its own, since a failure on the GPU destroys the context.
TEST_P(DeviceMemoryForms, TheEmulatorsBitsAreTheDevices) {
  PTXKIT_REQUIRE_DEVICE();
  if ((*device())->info().major != 9) GTEST_SKIP() << "the forms are those of compute capability 9.0";
  for (const MemoryCase& each : memory_cases(ptx::find_op(GetParam()))) {
    SCOPED_TRACE(each.name);
    const auto real = run_memory(each), emulated = emulate_memory(each);
    ASSERT_TRUE(real) << real.error().message();
    ASSERT_TRUE(emulated) << emulated.error().message();
    if (const char* file = std::getenv("PTXKIT_RECORD_MEMORY"))
      std::ofstream(file, std::ios::app) << fmt::format("{} {}\n", memory_hashes(each, *real), each.name);
    std::string differences;
    for (size_t i = 0; i < each.instructions.size(); ++i) {
      const std::string found = difference(each, i, *real, *emulated);
      if (memory_exception(each.instructions[i]).empty()) differences += found;
      if (!memory_exception(each.instructions[i]).empty() && (*device())->info().name != "Emulated GPU") {
        EXPECT_NE(found, "") << each.instructions[i] << " is no exception any more";
      }
    }
    EXPECT_EQ(differences, "");
  }
}

std::vector<std::string> names_of_ops() {
  std::vector<std::string> names;
  for (const ptx::Op op : memory_ops()) names.emplace_back(text(op));
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, DeviceMemoryForms, ::testing::ValuesIn(names_of_ops()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace ptxkit::testing
