// A stream, device memory and two events, for measurements.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/images.hpp"
#include "runtime/driver/context.hpp"
#include "runtime/driver/launch_contract.hpp"
#include "support/result.hpp"

namespace ptxkit::bench {

inline constexpr uint8_t kPoison = 0xa5;

template <class T>
std::span<const uint8_t> bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)};
}

// A stream with device memory. Keeps the first error of all calls: a measurement in which any call failed is invalid.
class Session {
 public:
  static Result<Session> open(const driver::ContextPointer& context) {
    auto stream = driver::Stream::create(context);
    if (!stream) return tl::unexpected(stream.error());
    auto begin = driver::Event::create(context), end = driver::Event::create(context);
    if (!begin) return tl::unexpected(begin.error());
    if (!end) return tl::unexpected(end.error());
    return Session(context, std::move(*stream), std::move(*begin), std::move(*end));
  }

  // Returns the index of the new buffer.
  size_t allocate(size_t size_bytes) {
    if (outcome_) {
      auto memory = driver::DeviceMemory::allocate(context_, std::max<size_t>(size_bytes, 1));
      if (memory) {
        memories_.push_back(std::move(*memory));
      } else {
        outcome_ = tl::unexpected(memory.error());
      }
    }
    return memories_.size() - 1;
  }
  template <class T>
  size_t upload(const std::vector<T>& values) {
    const size_t index = allocate(values.size() * sizeof(T));
    then([&] { return memories_[index].upload(bytes_of(values), stream_); });
    return index;
  }
  void poison(size_t index) {
    then([&] { return memories_[index].fill(kPoison, stream_); });
  }
  template <class T>
  std::vector<T> download(size_t index, size_t count) {
    std::vector<T> values(count);
    then([&] {
      return memories_[index].download({reinterpret_cast<uint8_t*>(values.data()), count * sizeof(T)}, stream_);
    });
    wait();
    return values;
  }
  driver::LaunchArgument argument(size_t index) const {
    return outcome_ ? driver::LaunchArgument::of(memories_[index].as<uint8_t>()) : driver::LaunchArgument{};
  }
  void wait() {
    then([&] { return stream_.wait(); });
  }
  // Seconds between the two events recorded around work(stream).
  template <class Work>
  Result<double> time(Work work) {
    then([&] { return begin_.record(stream_); });
    then([&] { return work(stream_); });
    then([&] { return end_.record(stream_); });
    then([&] { return end_.wait(); });
    if (!outcome_) return tl::unexpected(outcome_.error());
    return end_.seconds_since(begin_);
  }
  const driver::DeviceMemory& memory(size_t index) const { return memories_[index]; }
  const Result<void>& outcome() const { return outcome_; }

 private:
  Session(driver::ContextPointer context, driver::Stream stream, driver::Event begin, driver::Event end)
      : context_(std::move(context)), stream_(std::move(stream)), begin_(std::move(begin)), end_(std::move(end)) {}

  template <class Call>
  void then(Call call) {
    if (outcome_) outcome_ = call();
  }

  driver::ContextPointer context_;
  driver::Stream stream_;
  driver::Event begin_, end_;
  std::vector<driver::DeviceMemory> memories_;
  Result<void> outcome_;
};

// The image of a kernel for the device.
inline Result<const kernels::KernelImage*> find_image(const driver::ContextPointer& context, std::string_view name) {
  const auto& info = context->info();
  const kernels::KernelImage* const image = kernels::find_kernel_image(name, info.major, info.minor);
  if (image == nullptr)
    return fail(fmt::format("there is no image of kernel {} for sm_{}{}", name, info.major, info.minor));
  return image;
}

inline Result<driver::Kernel> load_kernel(const driver::ContextPointer& context, std::string_view name) {
  const auto image = find_image(context, name);
  if (!image) return tl::unexpected(image.error());
  return driver::Kernel::load(context, **image);
}

}  // namespace ptxkit::bench
