// One GPU and the objects on it, each with exactly one owner: context, stream, event, device memory, pinned memory,
// kernel.
//
// Functions that return Result make the objects. They move but do not copy, and release themselves. All keep the
// context alive. No function here synchronises a whole device: waits are for one stream or one event.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/driver/driver.hpp"
#include "runtime/driver/launch_contract.hpp"

namespace ptxkit::driver {

struct DeviceInfo {
  std::string name;
  int ordinal = 0;
  uint32_t major = 0, minor = 0;  // compute capability
  uint32_t multiprocessor_count = 0;
  double clock_hertz = 0;  // the highest of the multiprocessors
  size_t memory_bytes = 0;

  // The maximal issue rate: four schedulers for each multiprocessor, one instruction each per clock (compute capability
  // 5.0 and later).
  double warp_instructions_per_second() const { return multiprocessor_count * 4.0 * clock_hertz; }
};

// The primary context of a device. Any thread may use it after make_current().
class Context {
 public:
  static Result<std::shared_ptr<const Context>> create(std::shared_ptr<const Driver> driver, int ordinal);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const DeviceInfo& info() const { return info_; }
  std::string description() const;  // "NVIDIA H200, sm_90, driver for CUDA 13.0"
  const Driver& driver() const { return *driver_; }
  const Api& api() const { return driver_->api(); }
  CuContext handle() const { return context_; }
  // Free device memory. The call waits for the device: callers that need it repeatedly must keep account themselves. If
  // the driver lacks the call, the whole memory of the device.
  Result<size_t> free_memory_bytes() const;
  // Makes the context current on the calling thread. Every function below calls it; it costs well under a microsecond.
  Result<void> make_current() const;
  // Turns a status of the driver into an error that names `call` and the device.
  Result<void> check(int status, const char* call) const;

 private:
  Context() = default;

  std::shared_ptr<const Driver> driver_;
  CuDevice device_ = 0;
  CuContext context_ = nullptr;
  DeviceInfo info_;
};
using ContextPointer = std::shared_ptr<const Context>;

// A handle and the function that releases it; the base of the owners below.
template <class Handle, int (*Api::*kRelease)(Handle)>
class Owner {
 public:
  Owner(Owner&& other) noexcept
      : context_(std::move(other.context_)), handle_(std::exchange(other.handle_, Handle{})) {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owner() {
    // An error here repeats an earlier one of the context, which has been reported.
    if (handle_ != Handle{} && context_->make_current()) (context_->api().*kRelease)(handle_);
  }
  Handle handle() const { return handle_; }
  const Context& context() const { return *context_; }

 protected:
  Owner(ContextPointer context, Handle handle) : context_(std::move(context)), handle_(handle) {}

 private:
  ContextPointer context_;
  Handle handle_;
};

class Event;

class Stream : public Owner<CuStream, &Api::stream_destroy> {
 public:
  static Result<Stream> create(ContextPointer context);  // does not synchronise with the default stream
  // Blocks until all work on the stream is complete.
  Result<void> wait() const;
  // Orders work that is put on this stream later after the work that `event` has recorded. Does not block.
  Result<void> wait_for(const Event& event) const;
  // Whether all work on the stream is complete. Does not block.
  Result<bool> is_done() const;

 private:
  using Owner::Owner;
};

class Event : public Owner<CuEvent, &Api::event_destroy> {
 public:
  static Result<Event> create(ContextPointer context);
  // Cheaper, for ordering only: seconds_since gives an error.
  static Result<Event> create_untimed(ContextPointer context);
  Result<void> record(const Stream& stream) const;
  Result<void> wait() const;
  // Seconds from `begin` to this event. Both must be complete.
  Result<double> seconds_since(const Event& begin) const;

 private:
  using Owner::Owner;
  static Result<Event> create(ContextPointer context, unsigned flags);
};

// `count` rows of `width_bytes`, whose starts are `pitch_bytes` apart.
struct Rows {
  size_t offset_bytes, pitch_bytes, width_bytes, count;
  bool is_empty() const { return count == 0 || width_bytes == 0; }
  size_t end_bytes() const { return offset_bytes + (count - 1) * pitch_bytes + width_bytes; }
};

// Device memory, 256-byte aligned, uninitialised.
class DeviceMemory : public Owner<CuDevicePointer, &Api::mem_free> {
 public:
  static Result<DeviceMemory> allocate(ContextPointer context, size_t size_bytes);
  size_t size_bytes() const { return size_bytes_; }
  template <class T>
  DevicePointer<T> as() const {
    return {handle()};
  }
  // Asynchronous copies. Host ranges must be pinned to overlap with other work, and must live until the stream has
  // completed the copy.
  Result<void> upload(std::span<const uint8_t> from, const Stream& stream, size_t offset_bytes = 0) const;
  Result<void> download(std::span<uint8_t> into, const Stream& stream, size_t offset_bytes = 0) const;
  // Copy rows, counted from offset_bytes, each between its own places on both sides. With no rows the driver is not
  // called.
  Result<void> upload_rows(std::span<const uint8_t> from, const Rows& rows, const Stream& stream,
                           size_t offset_bytes = 0) const;
  Result<void> download_rows(std::span<uint8_t> into, const Rows& rows, const Stream& stream,
                             size_t offset_bytes = 0) const;
  Result<void> fill(uint8_t value, const Stream& stream) const { return fill(value, stream, 0, size_bytes_); }
  Result<void> fill(uint8_t value, const Stream& stream, size_t offset_bytes, size_t size_bytes) const;
  // Copies all of `from`, which must not be larger than this.
  Result<void> copy_from(const DeviceMemory& from, const Stream& stream) const;

 private:
  DeviceMemory(ContextPointer context, CuDevicePointer pointer, size_t size_bytes)
      : Owner(std::move(context), pointer), size_bytes_(size_bytes) {}
  void check_rows(const Rows& rows, size_t host_bytes, size_t offset_bytes) const;
  Result<void> copy_rows(CuCopy2d copy, const Rows& rows, const Stream& stream) const;
  size_t size_bytes_;
};

// Page-locked host memory. It is mapped into every context (CUDA Driver API, "Unified Addressing") and stays readable
// after a context has failed: what a kernel wrote there before it was killed can be read.
class PinnedMemory : public Owner<void*, &Api::mem_free_host> {
 public:
  static Result<PinnedMemory> allocate(ContextPointer context, size_t size_bytes);
  std::span<uint8_t> bytes() const { return {static_cast<uint8_t*>(handle()), size_bytes_}; }
  Result<uint64_t> device_address() const;  // the address for kernels

 private:
  PinnedMemory(ContextPointer context, void* pointer, size_t size_bytes)
      : Owner(std::move(context), pointer), size_bytes_(size_bytes) {}
  size_t size_bytes_;
};

// The address by which kernels reach a place in page-locked memory.
Result<uint64_t> device_address_of(const Context& context, void* page_locked);

struct LaunchGeometry {
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
  std::array<uint32_t, 3> cluster{1, 1, 1};  // in CTAs; 1 x 1 x 1 leaves it to the kernel
};

struct KernelResources {
  uint32_t registers = 0, shared_bytes = 0, local_bytes = 0, max_block_threads = 0;
};

// A module and one of its entries.
class Kernel : public Owner<CuModule, &Api::module_unload> {
 public:
  // Loads an image. Error: no valid verdict for exactly this text; see check_verdict.
  static Result<Kernel> load(ContextPointer context, const kernels::KernelImage& image);
  // Loads text without a verdict: probes, experiments. `optimisation_level` of the driver's compiler, 0 to 4.
  static Result<Kernel> load_unverified(ContextPointer context, std::string ptx, LaunchContract contract,
                                        int optimisation_level = 4);

  const LaunchContract& contract() const { return contract_; }
  // Selects another entry of the same module.
  Result<void> select(LaunchContract contract);
  Result<KernelResources> resources() const;
  // Asynchronous. Checks the arguments against the contract and copies them before it returns.
  Result<void> launch(const Stream& stream, uint32_t grid_blocks, uint32_t block_threads,
                      std::span<const LaunchArgument> arguments) const;
  // The same on a stream that the caller owns.
  Result<void> launch_on(CuStream stream, uint32_t grid_blocks, uint32_t block_threads,
                         std::span<const LaunchArgument> arguments) const;
  // Launches with any geometry and parameters of any type, for text without a verdict. Precondition: argument i has
  // exactly the bytes of parameter i.
  Result<void> launch_unchecked(const Stream& stream, const LaunchGeometry& geometry,
                                std::span<const std::vector<std::byte>> arguments) const;

  // Copy the first bytes of a .global or .const variable of the module; complete after the stream has been waited for.
  // Error: the module has no such variable, or it is smaller.
  Result<void> write_variable(const Stream& stream, const std::string& name, std::span<const std::byte> from) const;
  Result<void> read_variable(const Stream& stream, const std::string& name, std::span<std::byte> into) const;

 private:
  Result<CuDevicePointer> variable(const std::string& name, size_t size_bytes) const;
  Kernel(ContextPointer context, CuModule module, CuFunction function, LaunchContract contract)
      : Owner(std::move(context), module), function_(function), contract_(std::move(contract)) {}
  CuFunction function_;
  LaunchContract contract_;
};

}  // namespace ptxkit::driver
