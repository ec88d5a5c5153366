#include "runtime/driver/context.hpp"

#include <array>
#include <tuple>

#include <fmt/format.h>

#include "kernels/images.hpp"
#include "support/check.hpp"

namespace ptxkit::driver {
namespace {

// CUdevice_attribute, CUfunction_attribute, CUjit_option and flag values of cuda.h.
constexpr int kAttributeClockKilohertz = 13, kAttributeMultiprocessorCount = 16, kAttributeMajor = 75,
              kAttributeMinor = 76;
constexpr int kFunctionMaxThreads = 0, kFunctionSharedBytes = 1, kFunctionLocalBytes = 3, kFunctionRegisters = 4;
constexpr int kFunctionMaxDynamicSharedBytes = 8;
constexpr int kLaunchAttributeCluster = 4;
constexpr int kNotReady = 600;
// The limit without an opt-in: CUDA C++ Programming Guide, "Shared Memory" of compute capability 7.0.
constexpr uint32_t kDynamicSharedBytesForFree = 48 << 10;
constexpr int kJitErrorLog = 5, kJitErrorLogBytes = 6, kJitOptimisationLevel = 7;
constexpr unsigned kStreamNonBlocking = 1, kEventDefault = 0, kEventDisableTiming = 2, kHostAllocDefault = 0;
constexpr int kHostMemoryType = 1, kDeviceMemoryType = 2;

// Makes one driver call with the context current; `name` is for the error message.
template <class Call>
Result<void> on(const Context& context, const char* name, Call call) {
  if (auto current = context.make_current(); !current) return current;
  return context.check(call(), name);
}

}  // namespace

Result<std::shared_ptr<const Context>> Context::create(std::shared_ptr<const Driver> driver, int ordinal) {
  if (ordinal < 0 || ordinal >= driver->device_count()) {
    return fail(fmt::format("there is no device {}: expected a number below {}", ordinal, driver->device_count()), {},
                "nvidia-smi -L lists the devices");
  }
  std::shared_ptr<Context> context(new Context);
  context->driver_ = std::move(driver);
  const Api& api = context->api();
  DeviceInfo& info = context->info_;
  info.ordinal = ordinal;
  info.name = fmt::format("device {}", ordinal);
  CuDevice& device = context->device_;
  std::array<char, 256> name{};
  int major = 0, minor = 0, multiprocessors = 0, kilohertz = 0;
  const auto attempt = [&](int status, const char* call) { return context->check(status, call); };
  if (auto done = attempt(api.device_get(&device, ordinal), "cuDeviceGet"); !done) return tl::unexpected(done.error());
  if (auto done =
          attempt(api.device_get_name(name.data(), static_cast<int>(name.size()) - 1, device), "cuDeviceGetName");
      !done) {
    return tl::unexpected(done.error());
  }
  info.name = name.data();
  for (const auto& [value, attribute] :
       {std::pair(&major, kAttributeMajor), std::pair(&minor, kAttributeMinor),
        std::pair(&multiprocessors, kAttributeMultiprocessorCount), std::pair(&kilohertz, kAttributeClockKilohertz)}) {
    if (auto done = attempt(api.device_get_attribute(value, attribute, device), "cuDeviceGetAttribute"); !done) {
      return tl::unexpected(done.error());
    }
  }
  info.major = static_cast<uint32_t>(major);
  info.minor = static_cast<uint32_t>(minor);
  info.multiprocessor_count = static_cast<uint32_t>(multiprocessors);
  info.clock_hertz = 1e3 * kilohertz;
  if (auto done = attempt(api.device_total_mem(&info.memory_bytes, device), "cuDeviceTotalMem"); !done) {
    return tl::unexpected(done.error());
  }
  if (auto done = attempt(api.primary_context_retain(&context->context_, device), "cuDevicePrimaryCtxRetain"); !done) {
    return tl::unexpected(done.error());
  }
  return context;
}

Context::~Context() {
  if (context_ != nullptr) api().primary_context_release(device_);
}

std::string Context::description() const {
  const int version = driver_->version();
  return fmt::format("{}, sm_{}{}, driver for CUDA {}.{}", info_.name, info_.major, info_.minor, version / 1000,
                     version % 1000 / 10);
}

Result<size_t> Context::free_memory_bytes() const {
  size_t free_bytes = info_.memory_bytes, total_bytes = 0;
  if (api().mem_get_info == nullptr) return free_bytes;
  auto done = on(*this, "cuMemGetInfo", [&] { return api().mem_get_info(&free_bytes, &total_bytes); });
  if (!done) return tl::unexpected(done.error());
  return free_bytes;
}

Result<void> Context::make_current() const { return check(api().context_set_current(context_), "cuCtxSetCurrent"); }

Result<void> Context::check(int status, const char* call) const {
  if (status == 0) return {};
  return driver_->check(status, call, fmt::format("device {}, {}", info_.ordinal, info_.name));
}

Result<Stream> Stream::create(ContextPointer context) {
  CuStream stream = nullptr;
  auto done = on(*context, "cuStreamCreate", [&] { return context->api().stream_create(&stream, kStreamNonBlocking); });
  if (!done) return tl::unexpected(done.error());
  return Stream(std::move(context), stream);
}

Result<void> Stream::wait() const {
  return on(context(), "cuStreamSynchronize", [&] { return context().api().stream_synchronize(handle()); });
}

Result<bool> Stream::is_done() const {
  int status = 0;
  auto done = on(context(), "cuStreamQuery", [&] {
    status = context().api().stream_query(handle());
    return status == kNotReady ? 0 : status;
  });
  if (!done) return tl::unexpected(done.error());
  return status == 0;
}

Result<void> Stream::wait_for(const Event& event) const {
  return on(context(), "cuStreamWaitEvent",
            [&] { return context().api().stream_wait_event(handle(), event.handle(), 0); });
}

Result<Event> Event::create(ContextPointer context) { return create(std::move(context), kEventDefault); }
Result<Event> Event::create_untimed(ContextPointer context) { return create(std::move(context), kEventDisableTiming); }

Result<Event> Event::create(ContextPointer context, unsigned flags) {
  CuEvent event = nullptr;
  auto done = on(*context, "cuEventCreate", [&] { return context->api().event_create(&event, flags); });
  if (!done) return tl::unexpected(done.error());
  return Event(std::move(context), event);
}

Result<void> Event::record(const Stream& stream) const {
  return on(context(), "cuEventRecord", [&] { return context().api().event_record(handle(), stream.handle()); });
}

Result<void> Event::wait() const {
  return on(context(), "cuEventSynchronize", [&] { return context().api().event_synchronize(handle()); });
}

Result<double> Event::seconds_since(const Event& begin) const {
  float milliseconds = 0;
  auto done = on(context(), "cuEventElapsedTime",
                 [&] { return context().api().event_elapsed_time(&milliseconds, begin.handle(), handle()); });
  if (!done) return tl::unexpected(done.error());
  return static_cast<double>(milliseconds) / 1e3;
}

Result<DeviceMemory> DeviceMemory::allocate(ContextPointer context, size_t size_bytes) {
  CuDevicePointer pointer = 0;
  auto done = on(*context, "cuMemAlloc", [&] { return context->api().mem_alloc(&pointer, size_bytes); });
  if (!done) {
    done.error().what += fmt::format("; {} bytes were asked for", size_bytes);
    return tl::unexpected(done.error());
  }
  return DeviceMemory(std::move(context), pointer, size_bytes);
}

Result<void> DeviceMemory::upload(std::span<const uint8_t> from, const Stream& stream, size_t offset_bytes) const {
  PTXKIT_CHECK(offset_bytes + from.size() <= size_bytes_, "an upload stays inside its device memory");
  if (from.empty()) return {};
  return on(context(), "cuMemcpyHtoDAsync", [&] {
    return context().api().memcpy_to_device_async(handle() + offset_bytes, from.data(), from.size(), stream.handle());
  });
}

Result<void> DeviceMemory::download(std::span<uint8_t> into, const Stream& stream, size_t offset_bytes) const {
  PTXKIT_CHECK(offset_bytes + into.size() <= size_bytes_, "a download stays inside its device memory");
  if (into.empty()) return {};
  return on(context(), "cuMemcpyDtoHAsync", [&] {
    return context().api().memcpy_to_host_async(into.data(), handle() + offset_bytes, into.size(), stream.handle());
  });
}

Result<void> DeviceMemory::upload_rows(std::span<const uint8_t> from, const Rows& rows, const Stream& stream,
                                       size_t offset_bytes) const {
  check_rows(rows, from.size(), offset_bytes);
  if (rows.is_empty()) return {};
  if (rows.count == 1) {
    return upload(from.subspan(rows.offset_bytes, rows.width_bytes), stream, offset_bytes + rows.offset_bytes);
  }
  CuCopy2d copy{};
  // The const_cast is safe: the source of a copy is only read.
  copy.from.memory_type = kHostMemoryType;
  copy.from.host = const_cast<uint8_t*>(from.data()) + rows.offset_bytes;
  copy.to.memory_type = kDeviceMemoryType;
  copy.to.device = handle() + offset_bytes + rows.offset_bytes;
  return copy_rows(copy, rows, stream);
}

Result<void> DeviceMemory::download_rows(std::span<uint8_t> into, const Rows& rows, const Stream& stream,
                                         size_t offset_bytes) const {
  check_rows(rows, into.size(), offset_bytes);
  if (rows.is_empty()) return {};
  if (rows.count == 1) {
    return download(into.subspan(rows.offset_bytes, rows.width_bytes), stream, offset_bytes + rows.offset_bytes);
  }
  CuCopy2d copy{};
  copy.from.memory_type = kDeviceMemoryType;
  copy.from.device = handle() + offset_bytes + rows.offset_bytes;
  copy.to.memory_type = kHostMemoryType;
  copy.to.host = into.data() + rows.offset_bytes;
  return copy_rows(copy, rows, stream);
}

void DeviceMemory::check_rows(const Rows& rows, size_t host_bytes, size_t offset_bytes) const {
  PTXKIT_CHECK(rows.is_empty() || (rows.end_bytes() <= host_bytes && offset_bytes + host_bytes <= size_bytes_),
               "rows stay inside both memories");
}

Result<void> DeviceMemory::copy_rows(CuCopy2d copy, const Rows& rows, const Stream& stream) const {
  copy.from.pitch_bytes = copy.to.pitch_bytes = rows.pitch_bytes;
  copy.width_bytes = rows.width_bytes;
  copy.height = rows.count;
  return on(context(), "cuMemcpy2DAsync", [&] { return context().api().memcpy_2d_async(&copy, stream.handle()); });
}

Result<void> DeviceMemory::fill(uint8_t value, const Stream& stream, size_t offset_bytes, size_t size_bytes) const {
  PTXKIT_CHECK(offset_bytes + size_bytes <= size_bytes_, "what is filled is inside its device memory");
  if (size_bytes == 0) return {};
  return on(context(), "cuMemsetD8Async",
            [&] { return context().api().memset_async(handle() + offset_bytes, value, size_bytes, stream.handle()); });
}

Result<void> DeviceMemory::copy_from(const DeviceMemory& from, const Stream& stream) const {
  PTXKIT_CHECK(from.size_bytes_ <= size_bytes_, "a copy stays inside its device memory");
  return on(context(), "cuMemcpyDtoDAsync", [&] {
    return context().api().memcpy_on_device_async(handle(), from.handle(), from.size_bytes_, stream.handle());
  });
}

Result<PinnedMemory> PinnedMemory::allocate(ContextPointer context, size_t size_bytes) {
  void* pointer = nullptr;
  auto done = on(*context, "cuMemHostAlloc",
                 [&] { return context->api().mem_host_alloc(&pointer, size_bytes, kHostAllocDefault); });
  if (!done) return tl::unexpected(done.error());
  return PinnedMemory(std::move(context), pointer, size_bytes);
}

Result<uint64_t> PinnedMemory::device_address() const { return device_address_of(context(), handle()); }

Result<uint64_t> device_address_of(const Context& context, void* page_locked) {
  CuDevicePointer pointer = 0;
  auto done = on(context, "cuMemHostGetDevicePointer",
                 [&] { return context.api().mem_host_get_device_pointer(&pointer, page_locked, 0); });
  if (!done) return tl::unexpected(done.error());
  return pointer;
}

Result<Kernel> Kernel::load(ContextPointer context, const kernels::KernelImage& image) {
  if (auto checked = check_verdict(image); !checked) return tl::unexpected(checked.error());
  return load_unverified(std::move(context), std::string(image.ptx), contract_of(image));
}

Result<Kernel> Kernel::load_unverified(ContextPointer context, std::string ptx, LaunchContract contract,
                                       int optimisation_level) {
  const Api& api = context->api();
  CuModule module = nullptr;
  std::array<char, 8192> log{};
  std::array<int, 3> options{kJitErrorLog, kJitErrorLogBytes, kJitOptimisationLevel};
  const auto as_option = [](uintptr_t value) { return reinterpret_cast<void*>(value); };
  std::array<void*, 3> values{log.data(), as_option(log.size() - 1),
                              as_option(static_cast<uintptr_t>(optimisation_level))};
  auto done = on(*context, "cuModuleLoadDataEx",
                 [&] { return api.module_load_data_ex(&module, ptx.c_str(), 3, options.data(), values.data()); });
  if (!done) {
    done.error().where = fmt::format("{}, kernel {}", done.error().where, contract.name);
    if (log[0] != '\0') done.error().what += fmt::format("; the compiler's log: {}", log.data());
    return tl::unexpected(done.error());
  }
  Kernel kernel(std::move(context), module, nullptr, {});
  if (auto selected = kernel.select(std::move(contract)); !selected) return tl::unexpected(selected.error());
  return kernel;
}

Result<KernelResources> Kernel::resources() const {
  KernelResources resources;
  const std::pair<uint32_t*, int> wanted[] = {{&resources.registers, kFunctionRegisters},
                                              {&resources.shared_bytes, kFunctionSharedBytes},
                                              {&resources.local_bytes, kFunctionLocalBytes},
                                              {&resources.max_block_threads, kFunctionMaxThreads}};
  for (const auto& [value, attribute] : wanted) {
    int number = 0;
    auto done = on(context(), "cuFuncGetAttribute",
                   [&] { return context().api().function_get_attribute(&number, attribute, function_); });
    if (!done) return tl::unexpected(done.error());
    *value = static_cast<uint32_t>(number);
  }
  return resources;
}

Result<void> Kernel::launch(const Stream& stream, uint32_t grid_blocks, uint32_t block_threads,
                            std::span<const LaunchArgument> arguments) const {
  return launch_on(stream.handle(), grid_blocks, block_threads, arguments);
}

Result<void> Kernel::launch_on(CuStream stream, uint32_t grid_blocks, uint32_t block_threads,
                               std::span<const LaunchArgument> arguments) const {
  if (auto checked = check_launch(contract_, grid_blocks, block_threads, arguments); !checked) return checked;
  // The driver reads as many bytes of each argument as its parameter has. Values are little-endian, so a 4-byte
  // parameter reads the low half.
  std::vector<uint64_t> values(arguments.size());
  std::vector<void*> pointers(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    values[i] = arguments[i].value;
    pointers[i] = &values[i];
  }
  auto done = on(context(), "cuLaunchKernel", [&] {
    return context().api().launch_kernel(function_, grid_blocks, 1, 1, block_threads, 1, 1, 0, stream, pointers.data(),
                                         nullptr);
  });
  if (!done) done.error().where = fmt::format("{}, kernel {}", done.error().where, contract_.name);
  return done;
}

Result<void> Kernel::launch_unchecked(const Stream& stream, const LaunchGeometry& geometry,
                                      std::span<const std::vector<std::byte>> arguments) const {
  // The driver only reads through these pointers.
  std::vector<void*> pointers;
  for (const auto& argument : arguments) pointers.push_back(const_cast<std::byte*>(argument.data()));
  auto done = on(context(), "cuFuncSetAttribute", [&] {
    if (geometry.dynamic_shared_bytes <= kDynamicSharedBytesForFree) return 0;
    return context().api().function_set_attribute(function_, kFunctionMaxDynamicSharedBytes,
                                                  static_cast<int>(geometry.dynamic_shared_bytes));
  });
  if (done) {
    const auto& [grid, block, shared_bytes, cluster] = geometry;
    const Api& api = context().api();
    if (cluster == std::array<uint32_t, 3>{1, 1, 1}) {
      done = on(context(), "cuLaunchKernel", [&] {
        return api.launch_kernel(function_, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared_bytes,
                                 stream.handle(), pointers.data(), nullptr);
      });
    } else if (api.launch_kernel_ex == nullptr) {
      done = fail("the driver launches no clusters", context().info().name, "install a newer NVIDIA driver");
    } else {
      const CuLaunchAttribute attribute{kLaunchAttributeCluster, {cluster[0], cluster[1], cluster[2]}};
      const CuLaunchConfig config{
          {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shared_bytes, stream.handle(), &attribute, 1};
      done = on(context(), "cuLaunchKernelEx",
                [&] { return api.launch_kernel_ex(&config, function_, pointers.data(), nullptr); });
    }
  }
  if (!done) done.error().where = fmt::format("{}, kernel {}", done.error().where, contract_.name);
  return done;
}

Result<void> Kernel::select(LaunchContract contract) {
  CuFunction function = nullptr;
  auto done = on(context(), "cuModuleGetFunction",
                 [&] { return context().api().module_get_function(&function, handle(), contract.name.c_str()); });
  if (!done) {
    done.error().where = fmt::format("{}, kernel {}", done.error().where, contract.name);
    return done;
  }
  function_ = function;
  contract_ = std::move(contract);
  return {};
}

Result<CuDevicePointer> Kernel::variable(const std::string& name, size_t size_bytes) const {
  if (context().api().module_get_global == nullptr)
    return fail("the driver gives no addresses of variables", name, "install a newer NVIDIA driver");
  CuDevicePointer address = 0;
  size_t has_bytes = 0;
  auto done = on(context(), "cuModuleGetGlobal",
                 [&] { return context().api().module_get_global(&address, &has_bytes, handle(), name.c_str()); });
  if (done && has_bytes < size_bytes)
    done = fail(fmt::format("it has {} bytes, not {}", has_bytes, size_bytes), context().info().name);
  if (done) return address;
  done.error().where = fmt::format("{}, variable {}", done.error().where, name);
  return tl::unexpected(done.error());
}

Result<void> Kernel::write_variable(const Stream& stream, const std::string& name,
                                    std::span<const std::byte> from) const {
  const auto address = variable(name, from.size());
  if (!address) return tl::unexpected(address.error());
  return on(context(), "cuMemcpyHtoDAsync", [&] {
    return context().api().memcpy_to_device_async(*address, from.data(), from.size(), stream.handle());
  });
}

Result<void> Kernel::read_variable(const Stream& stream, const std::string& name, std::span<std::byte> into) const {
  const auto address = variable(name, into.size());
  if (!address) return tl::unexpected(address.error());
  return on(context(), "cuMemcpyDtoHAsync",
            [&] { return context().api().memcpy_to_host_async(into.data(), *address, into.size(), stream.handle()); });
}

}  // namespace ptxkit::driver
