// The emulator, with every check, as the machine that runs the Zstandard kernels.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "builder/emit.hpp"
#include "fkr_tests/cases/zstd_chain.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"

namespace ptxkit::testing {

template <class T>
T emulated_value(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

class EmulatedZstdMachine : public ZstdMachine {
 public:
  explicit EmulatedZstdMachine(std::string_view build) : build_(build) {}

  uint64_t allocate(size_t size_bytes) override {
    return emulated_value(device_.allocate(size_bytes, "buffer " + std::to_string(++buffers_), 16));
  }
  void write(uint64_t address, std::span<const uint8_t> bytes) override {
    if (!bytes.empty() && !device_.write(address, std::as_bytes(bytes))) throw std::runtime_error("write");
  }
  Bytes read(uint64_t address, size_t size_bytes) override {
    Bytes bytes(size_bytes);
    if (!bytes.empty() && !device_.read(address, std::as_writable_bytes(std::span(bytes))))
      throw std::runtime_error("read");
    return bytes;
  }
  void launch(std::string_view kernel, const kernels::LaunchShape& shape, uint32_t count,
              const std::vector<driver::LaunchArgument>& values) override {
    const std::string text(kernel_image(kernel, build_).ptx);
    const auto program = emulated_value(emulator::Program::load_text(device_, text, std::string(kernel) + ".ptx"));
    std::vector<emulator::Argument> arguments;
    for (const driver::LaunchArgument& value : values) {
      arguments.push_back(value.size_bytes() == 4 ? emulator::Argument::of(static_cast<uint32_t>(value.value))
                                                  : emulator::Argument::of(value.value));
    }
    if (build_ == "debug") {
      arguments.push_back(emulator::Argument::of(upload(Bytes(size_t{16} * (dsl::EmitOptions{}.debug_records + 1)))));
    }
    const auto outcome = emulated_value(emulator::launch(
        program, std::string(kernel), {.grid = {shape.grid_blocks(count)}, .block = {shape.block_threads}}, arguments,
        {.checks = emulator::kCheckAll}));
    EXPECT_TRUE(outcome.ok()) << emulator::render(outcome, std::string(kernel) + ".ptx");
    if (!outcome.ok()) throw std::runtime_error("a fault");
  }

 private:
  std::string_view build_;
  emulator::Device device_;
  int buffers_ = 0;
};

}  // namespace ptxkit::testing
