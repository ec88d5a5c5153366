// `run --backend cuda`: see kernel_run.hpp.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "runtime/driver/context.hpp"
#include "runtime/driver/driver.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/launch/object_spec.hpp"
#include "support/result.hpp"
#include "tools/ptx-debug/argument_spec.hpp"
#include "tools/ptx-debug/kernel_run.hpp"

namespace ptxkit::tools {
namespace {

using driver::DeviceMemory;
using driver::PinnedMemory;

struct ModuleVariable {
  std::string name;
};

// An unused slot, device memory, mapped host memory that outlives the context, an object, or a module variable.
using Memory = std::variant<std::monostate, DeviceMemory, PinnedMemory, GpuObject, ModuleVariable>;

template <class T>
std::span<const uint8_t> byte_view(const T& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

Result<uint64_t> place(const driver::ContextPointer& context, const driver::Stream& stream, const ArgumentSpec& spec,
                       Memory& memory) {
  const size_t size_bytes = std::max<size_t>(spec.bytes.size(), 1);  // the driver refuses empty allocations
  if (spec.mapped) {
    auto pinned = PinnedMemory::allocate(context, size_bytes);
    if (!pinned) return tl::unexpected(pinned.error());
    std::memcpy(pinned->bytes().data(), spec.bytes.data(), spec.bytes.size());
    auto address = pinned->device_address();
    memory.emplace<PinnedMemory>(std::move(*pinned));
    return address;
  }
  auto device = DeviceMemory::allocate(context, size_bytes);
  if (!device) return tl::unexpected(device.error());
  if (spec.initialised) {
    if (auto done = device->upload(byte_view(spec.bytes), stream); !done) return tl::unexpected(done.error());
  }
  const uint64_t address = device->handle();
  memory.emplace<DeviceMemory>(std::move(*device));
  return address;
}

enum class Ending : uint8_t { kernel, deadline, stop };

Result<Ending> wait(const driver::Stream& stream, double deadline_seconds, const std::atomic<bool>& stop) {
  const auto begin = std::chrono::steady_clock::now();
  while (true) {
    const auto done = stream.is_done();
    if (!done) return tl::unexpected(done.error());
    if (*done) return Ending::kernel;
    if (stop) return Ending::stop;
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    if (deadline_seconds != 0 && waited.count() >= deadline_seconds) return Ending::deadline;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// All that a launch holds of the device. Members are destroyed in reverse order.
struct Session {
  driver::ContextPointer context;
  driver::Stream stream;
  driver::Kernel kernel;
  std::vector<Memory> memory;
};

Result<std::unique_ptr<Session>> open_session(const KernelRun& run) {
  auto opened = driver::Driver::open();
  if (!opened) return fail(opened.error().error.what, "--backend cuda", "--backend emulator needs no driver");
  const char* chosen = std::getenv("PTXKIT_DEVICE");
  auto context = driver::Context::create(std::move(*opened), chosen != nullptr ? std::atoi(chosen) : 0);
  if (!context) {
    context.error().where = "--backend cuda";
    return tl::unexpected(context.error());
  }
  auto stream = driver::Stream::create(*context);
  if (!stream) return tl::unexpected(stream.error());
  auto kernel = driver::Kernel::load_unverified(*context, run.ptx, {run.entry.name, 0, {}});
  if (!kernel) return tl::unexpected(kernel.error());
  return std::make_unique<Session>(Session{std::move(*context), std::move(*stream), std::move(*kernel), {}});
}

// The content of a buffer after the run; nothing where it was lost with its context.
Result<std::optional<std::vector<std::byte>>> content(const Memory& memory, size_t size_bytes,
                                                      const driver::Kernel& kernel, const driver::Stream& stream,
                                                      bool context_lives) {
  std::optional<std::vector<std::byte>> bytes;
  if (const auto* pinned = std::get_if<PinnedMemory>(&memory)) {
    const auto view = std::as_bytes(pinned->bytes()).first(size_bytes);
    bytes.emplace(view.begin(), view.end());
  } else if (!std::holds_alternative<std::monostate>(memory) && context_lives) {
    bytes.emplace(size_bytes);
    Result<void> read;
    if (const auto* object = std::get_if<GpuObject>(&memory))
      read = object->download(*bytes, stream);
    else if (const auto* variable = std::get_if<ModuleVariable>(&memory))
      read = kernel.read_variable(stream, variable->name, *bytes);
    else
      read = std::get<DeviceMemory>(memory).download({reinterpret_cast<uint8_t*>(bytes->data()), size_bytes}, stream);
    if (read) read = stream.wait();
    if (!read) return tl::unexpected(read.error());
  }
  return bytes;
}

}  // namespace

Result<GpuOutcome> run_on_gpu(const KernelRun& run, double deadline_seconds, const std::atomic<bool>& stop) {
  const auto& parameters = run.entry.parameters;
  const size_t argument_count = run.arguments.size() - run.bindings.size();
  if (argument_count != parameters.size())
    return fail(
        fmt::format("launch of '{}': {} arguments, expected {}", run.entry.name, argument_count, parameters.size()));
  auto session = open_session(run);
  if (!session) return tl::unexpected(session.error());
  auto& [context, stream, kernel, memory] = **session;

  const auto value_of = [&](const ArgumentSpec& piece) -> Result<std::vector<std::byte>> {
    memory.emplace_back();
    if (piece.object) {
      auto object = GpuObject::create(context, *piece.object, piece.bytes, stream);
      if (!object) return tl::unexpected(object.error());
      auto value = object->value();
      memory.back().emplace<GpuObject>(std::move(*object));
      return value;
    }
    if (!piece.is_buffer) return piece.bytes;
    const auto address = place(context, stream, piece, memory.back());
    if (!address) return tl::unexpected(address.error());
    std::vector<std::byte> value(run.address_bits / 8);
    std::memcpy(value.data(), &*address, value.size());
    return value;
  };
  std::vector<std::vector<std::byte>> values;
  for (size_t i = 0; i < parameters.size(); ++i) {
    auto value = argument_bytes(run.arguments[i], value_of);
    if (!value) return tl::unexpected(value.error());
    values.push_back(std::move(*value));
    if (values.back().size() != parameters[i].size_bytes)
      return fail(fmt::format("launch of '{}': argument {} has {} bytes, parameter '{}' has {}", run.entry.name, i,
                              values.back().size(), parameters[i].name, parameters[i].size_bytes));
  }
  for (size_t i = 0; i < run.bindings.size(); ++i) {
    const ArgumentSpec& argument = run.arguments[argument_count + i];
    const std::string& name = run.bindings[i];
    Result<void> set;
    if (argument.is_content()) {
      memory.emplace_back(ModuleVariable{name});
      set = kernel.write_variable(stream, name, argument.bytes);
    } else {
      const auto value = argument_bytes(argument, value_of);
      if (!value) return tl::unexpected(value.error());
      const auto* const object = std::get_if<GpuObject>(&memory.back());
      set = object != nullptr ? object->bind(kernel.handle(), name) : kernel.write_variable(stream, name, *value);
      if (set) set = stream.wait();  // the copy reads `value` until then
    }
    if (!set) return tl::unexpected(set.error());
  }

  const auto axes = [](const emulator::Dim3& dim) { return std::array{dim.x, dim.y, dim.z}; };
  const emulator::LaunchShape& shape = run.shape;
  const driver::LaunchGeometry geometry{axes(shape.grid), axes(shape.block), shape.dynamic_shared_bytes,
                                        axes(shape.cluster)};
  if (auto launched = kernel.launch_unchecked(stream, geometry, values); !launched)
    return tl::unexpected(launched.error());
  GpuOutcome outcome;
  outcome.device = context->description();
  const auto ended = wait(stream, deadline_seconds, stop);
  outcome.timed_out = ended && *ended == Ending::deadline;
  outcome.interrupted = ended && *ended == Ending::stop;
  // Ask for the CUresult again: `ended` holds only its message.
  if (!ended) outcome.status = context->api().stream_synchronize(stream.handle());
  const auto pieces = run.pieces();
  for (size_t i = 0; i < pieces.size(); ++i) {
    auto bytes =
        content(memory[i], pieces[i]->bytes.size(), kernel, stream, outcome.status == 0 && !outcome.is_running());
    if (!bytes) return tl::unexpected(bytes.error());
    outcome.buffers.push_back(std::move(*bytes));
  }
  if (outcome.is_running()) (void)session->release();  // freeing anything would wait for the kernel
  return outcome;
}

}  // namespace ptxkit::tools
