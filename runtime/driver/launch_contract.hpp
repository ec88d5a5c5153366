// A kernel's requirements for loading and launching it, checked on the host before anything reaches a device.
//
// An image is loaded only with a verdict of the analyzer for exactly its text. A launch must use the declared CTA size,
// and arguments of the declared count, sizes and alignments. Both checks are the same for the GPU and the emulator.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/images.hpp"
#include "support/result.hpp"

namespace ptxkit::driver {

constexpr uint32_t kMinVerdictScore = 90;

// Error: an image without a verdict, with a verdict for another text, with a score below kMinVerdictScore, or with a
// critical finding.
Result<void> check_verdict(const kernels::KernelImage& image);

// An address in device memory. T is the type of the data there, for the host only.
template <class T>
struct DevicePointer {
  uint64_t address = 0;
  DevicePointer operator+(size_t count) const { return {address + count * sizeof(T)}; }
};

struct LaunchArgument {
  kernels::ParameterType type = kernels::ParameterType::u32;
  uint64_t value = 0;

  template <class T>
  static LaunchArgument of(DevicePointer<T> pointer) {
    return {kernels::ParameterType::pointer, pointer.address};
  }
  static LaunchArgument of_address(uint64_t address) { return {kernels::ParameterType::pointer, address}; }
  static LaunchArgument of(uint32_t value) { return {kernels::ParameterType::u32, value}; }
  static LaunchArgument of(uint64_t value) { return {kernels::ParameterType::u64, value}; }
  static LaunchArgument of(int32_t value) { return {kernels::ParameterType::i32, static_cast<uint32_t>(value)}; }
  static LaunchArgument of(int64_t value) { return {kernels::ParameterType::i64, static_cast<uint64_t>(value)}; }
  static LaunchArgument of(float value) { return {kernels::ParameterType::f32, std::bit_cast<uint32_t>(value)}; }
  static LaunchArgument of(double value) { return {kernels::ParameterType::f64, std::bit_cast<uint64_t>(value)}; }
  size_t size_bytes() const {
    using enum kernels::ParameterType;
    return type == u32 || type == i32 || type == f32 ? 4 : 8;
  }
};

struct LaunchContract {
  std::string name;
  uint32_t block_threads = 0;  // .reqntid
  std::vector<kernels::KernelParameter> parameters;
};
LaunchContract contract_of(const kernels::KernelImage& image);

// Error: names the kernel, the parameter, the expected and the actual value.
Result<void> check_launch(const LaunchContract& contract, uint32_t grid_blocks, uint32_t block_threads,
                          std::span<const LaunchArgument> arguments);

}  // namespace ptxkit::driver
