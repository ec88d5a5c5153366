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
  std::vector<driver::LaunchArgument> values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const KernelArgument& argument = arguments[i];
    if (!argument.is_buffer) {
      values.push_back(driver::LaunchArgument::of(argument.value));
      continue;
    }
    memories.push_back(driver::DeviceMemory::allocate(context, std::max<size_t>(argument.size_bytes, 1)).value());
    EXPECT_TRUE(memories.back().fill(0xa5, stream));
    if (!argument.bytes.empty()) {
      EXPECT_TRUE(memories.back().upload(argument.bytes, stream));
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
    buffers.emplace_back(argument.is_scratch ? 0 : argument.size_bytes);
    EXPECT_TRUE(memories[next++].download(buffers.back(), stream));
  }
  const auto waited = stream.wait();
  EXPECT_TRUE(waited.has_value()) << name << ": " << waited.error().message();
  if (!waited) return {};
  seconds = end.seconds_since(begin).value();
  return buffers;
}

}  // namespace ptxkit::testing
