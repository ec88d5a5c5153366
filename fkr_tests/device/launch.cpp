#include "fkr_tests/device/launch.hpp"

#include <algorithm>
#include <stdexcept>

#include "fkr_tests/device/device.hpp"
#include "kernels/images.hpp"

namespace ptxkit::testing {
namespace {

double seconds = 0;

}  // namespace

double last_seconds() { return seconds; }

std::vector<Bytes> launch(std::string_view name, uint32_t grid, uint32_t block_threads,
                          const std::vector<KernelArgument>& arguments) {
  const driver::ContextPointer context = *device();
  const auto* const image = kernels::find_kernel_image(name, context->info().major, context->info().minor);
  if (image == nullptr) throw std::runtime_error("no image of " + std::string(name));
  const auto kernel = driver::Kernel::load(context, *image);
  if (!kernel) throw std::runtime_error(kernel.error().message());
  const auto stream = driver::Stream::create(context).value();
  std::vector<driver::DeviceMemory> memories;
  std::vector<std::vector<driver::DeviceMemory>> pointees;  // of each of `memories`
  std::vector<driver::LaunchArgument> values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const KernelArgument& argument = arguments[i];
    if (!argument.is_buffer) {
      values.push_back(driver::LaunchArgument::of(argument.value));
      continue;
    }
    memories.push_back(driver::DeviceMemory::allocate(context, std::max<size_t>(argument.size_bytes, 1)).value());
    EXPECT_TRUE(memories.back().fill(0xa5, stream));
    Bytes content = argument.bytes;
    pointees.emplace_back();
    for (const Bytes& pointee : argument.pointees) {
      auto& memory = pointees.back().emplace_back(
          driver::DeviceMemory::allocate(context, std::max<size_t>(pointee.size(), 1)).value());
      EXPECT_TRUE(memory.upload(pointee, stream));
      const driver::CuDevicePointer address = memory.handle();
      const auto* const first = reinterpret_cast<const uint8_t*>(&address);
      content.insert(content.end(), first, first + sizeof address);
    }
    if (!content.empty()) {
      EXPECT_TRUE(memories.back().upload(content, stream));
      EXPECT_TRUE(stream.wait());  // for `content`
    }
    const bool is_bytes = image->parameters[i].pointee_alignment_bytes == 1 || image->parameters[i].name == "src" ||
                          image->parameters[i].name == "dst";
    values.push_back(is_bytes ? driver::LaunchArgument::of(memories.back().as<uint8_t>())
                              : driver::LaunchArgument::of(memories.back().as<uint32_t>()));
  }
  const auto begin = driver::Event::create(context).value(), end = driver::Event::create(context).value();
  EXPECT_TRUE(begin.record(stream));
  const auto launched = kernel->launch(stream, grid, block_threads, values);
  EXPECT_TRUE(launched.has_value()) << launched.error().message();
  EXPECT_TRUE(end.record(stream));
  std::vector<Bytes> buffers;
  size_t next = 0;
  for (const KernelArgument& argument : arguments) {
    if (!argument.is_buffer) continue;
    const auto& items = pointees[next];
    const auto& memory = memories[next++];
    if (items.empty()) {
      buffers.emplace_back(argument.is_scratch ? 0 : argument.size_bytes);
      EXPECT_TRUE(memory.download(buffers.back(), stream));
      continue;
    }
    buffers.emplace_back();
    for (size_t i = 0; i < items.size(); ++i) {
      Bytes content(argument.pointees[i].size());
      EXPECT_TRUE(items[i].download(content, stream));
      EXPECT_TRUE(stream.wait());
      buffers.back().insert(buffers.back().end(), content.begin(), content.end());
    }
  }
  const auto waited = stream.wait();
  EXPECT_TRUE(waited.has_value()) << name << ": " << waited.error().message();
  if (!waited) return {};
  seconds = end.seconds_since(begin).value();
  return buffers;
}

}  // namespace ptxkit::testing
