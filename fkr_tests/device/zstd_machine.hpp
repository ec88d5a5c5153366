// A GPU as the machine that runs the Zstandard kernels, with the time of each.
#pragma once

#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fkr_tests/cases/zstd_chain.hpp"
#include "fkr_tests/device/device.hpp"
#include "kernels/images.hpp"

namespace ptxkit::testing {

template <class T>
T device_value(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(*result);
}
inline void device_require(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().message());
}

class DeviceZstdMachine : public ZstdMachine {
 public:
  DeviceZstdMachine() : context_(*device()), stream_(device_value(driver::Stream::create(context_))) {}

  uint64_t allocate(size_t size_bytes) override {
    memories_.push_back(device_value(driver::DeviceMemory::allocate(context_, size_bytes)));
    device_require(memories_.back().fill(0xa5, stream_));
    return memories_.back().handle();
  }
  void write(uint64_t address, std::span<const uint8_t> bytes) override {
    device_require(holder(address).upload(bytes, stream_, address - holder(address).handle()));
    device_require(stream_.wait());
  }
  Bytes read(uint64_t address, size_t size_bytes) override {
    Bytes bytes(size_bytes);
    device_require(holder(address).download(bytes, stream_, address - holder(address).handle()));
    device_require(stream_.wait());
    return bytes;
  }
  void launch(std::string_view name, const kernels::LaunchShape& shape, uint32_t count,
              const std::vector<driver::LaunchArgument>& arguments) override {
    const auto* const image = kernels::find_kernel_image(name, context_->info().major, context_->info().minor);
    if (image == nullptr) throw std::runtime_error("no image of " + std::string(name));
    const auto kernel = device_value(driver::Kernel::load(context_, *image));
    const auto begin = device_value(driver::Event::create(context_)),
               end = device_value(driver::Event::create(context_));
    device_require(begin.record(stream_));
    device_require(kernel.launch(stream_, shape.grid_blocks(count), shape.block_threads, arguments));
    device_require(end.record(stream_));
    device_require(stream_.wait());
    seconds_[std::string(name)] = device_value(end.seconds_since(begin));
  }

  // GB/s of each kernel's last launch, and of all of them one after another.
  void print_rates(size_t raw_bytes) const {
    double all = 0;
    std::cout << ", GB/s:";
    for (const auto& [name, seconds] : seconds_) {
      std::cout << ' ' << name << ' ' << static_cast<double>(raw_bytes) / seconds / 1e9;
      all += seconds;
    }
    std::cout << "; together " << static_cast<double>(raw_bytes) / all / 1e9 << '\n';
  }

 private:
  const driver::DeviceMemory& holder(uint64_t address) const {
    for (const auto& memory : memories_) {
      if (address - memory.handle() < memory.size_bytes()) return memory;
    }
    throw std::runtime_error("no such address");
  }

  driver::ContextPointer context_;
  driver::Stream stream_;
  std::vector<driver::DeviceMemory> memories_;
  std::map<std::string, double> seconds_;  // of each kernel
};

}  // namespace ptxkit::testing
