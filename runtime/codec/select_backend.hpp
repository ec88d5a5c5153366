// Makes a backend from its name on the command line. A backend named outright is used, or refused with the reason.
// `auto` follows a policy: without a usable GPU, and after a failure of the GPU, the CPU does the work. The caller gets
// one notice and the same result.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/device/cuda_machine.hpp"
#include "runtime/codec/device/machine.hpp"
#include "runtime/codec/policy/policy.hpp"
#include "runtime/codec/policy/scheduled_backend.hpp"
#include "runtime/codec/policy/shared_work.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/codec/with_allocator.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {

enum class Policy : uint8_t {
  automatic,  // the GPU where measured rates predict that it is faster for the given size; see policy.hpp
  cpu,        // opens no driver
  gpu,        // the GPU for every operation that it supports
  mixed,      // both, each batch shared out between them
};

struct BackendRequest {
  std::string name = "auto";          // auto, cpu, emulator, cuda
  Policy policy = Policy::automatic;  // of `auto`
  // Policy::automatic only, these four.
  Work work = Work::compress;                 // what to do
  std::optional<uint64_t> raw_bytes;          // to how many bytes; empty: unknown
  std::string calibration_path;               // where measured rates are kept; empty: nowhere
  std::vector<uint64_t> sample_lengths = {};  // of streams to time, ascending, two or more; empty: sample_lengths()
  // Policy::mixed only: copies between items and staging memory. Must not be the executor on which the CPU codes.
  Executor* copy_executor = nullptr;
  // Held while a GPU's copies between items and staging memory run. An executor yields to it if its Placement names it.
  scheduler::Throttle* throttle = nullptr;
  // Device ordinals of cuda, used together; `auto` leaves out those that cannot be opened. Empty: all devices.
  std::vector<int> devices = {0};
  // Which of these devices this process takes, modulo their number; empty: all of them. For processes of one machine.
  std::optional<size_t> only_device;
  FindImage find_image;              // of cuda and emulator: kernels::find_kernel_image
  FallbackNotice notice;             // of `auto`; called from any thread, at most once for each device
  CudaLimits limits = {};            // of cuda, for each device
  AllocateHostMemory allocate = {};  // empty: the memory that each backend provides
  std::string cuda_library;          // empty: the system's; see driver::Driver::open
};

// The formats of a program's inputs or outputs that have kernels, as far as it knows.
struct GpuWork {
  bool may_be_lz4, may_be_blocks;
};
// Whether select_backend or select_block_coder will open a driver, for programs that must know it before they have
// threads. `cpu_threads`: of the executor. Where no rates are for the GPU, Policy::automatic becomes Policy::cpu.
bool settle_use_of_gpu(BackendRequest& request, unsigned cpu_threads, const GpuWork& work);
inline constexpr const char* kRatesAreUnknown = "the GPU's rates are unknown; 'ptx-pack --measure-rates' measures them";
// Whether Policy::automatic takes the CPU only because nothing has been measured, although there is a driver.
// `cpu_threads`: of the executor.
bool lacks_rates(const BackendRequest& request, unsigned cpu_threads);
// Measures LZ4 on the CPU and on the GPU, and keeps the rates at request.calibration_path. Takes about ten seconds, in
// which nothing else should run.
Result<void> measure_rates(const BackendRequest& request, Executor& executor);

// `executor` must outlive the backend.
Result<std::unique_ptr<Backend>> select_backend(const BackendRequest& request, Executor& executor);

// The same for blocks, of `.ptz` and of Zstandard. `executor` must outlive the coder.
Result<std::unique_ptr<BlockCoder>> select_block_coder(const BackendRequest& request, Executor& executor);

}  // namespace ptxkit::codec
