// From a name on a command line to a backend. A backend named outright is used or refused with the reason. `auto`
// leaves it to a policy; whatever that is, without a usable GPU the CPU does it, and if the GPU fails later the CPU
// goes on: one message, the same result.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/device/block_kernels.hpp"
#include "runtime/codec/device/cuda_machine.hpp"
#include "runtime/codec/device/machine.hpp"
#include "runtime/codec/policy/policy.hpp"
#include "runtime/codec/policy/scheduled_backend.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/codec/with_allocator.hpp"

namespace ptxkit::codec {

enum class Policy : uint8_t {
  automatic,  // the GPU where measured rates say that it is faster for so many bytes; see policy.hpp
  cpu,        // no driver is opened
  gpu,        // the GPU for everything it can do
  mixed,      // both, from one queue
};

struct BackendRequest {
  std::string name = "auto";          // auto, cpu, emulator, cuda
  Policy policy = Policy::automatic;  // of auto
  // Of Policy::automatic: what is to be done to how many bytes, as far as known; where measured rates are kept, empty:
  // nowhere; the lengths of the streams that are timed for that, two at least and ascending, empty: what suits both.
  Work work = Work::compress;
  std::optional<uint64_t> raw_bytes;
  std::string calibration_path;
  std::vector<uint64_t> sample_lengths = {};
  // Of Policy::mixed: copies between items and staging memory; another one than the CPU works on.
  Executor* copy_executor = nullptr;
  // Held while a GPU's copies between items and staging memory run; what looks at it is up to the executors.
  scheduler::Throttle* throttle = nullptr;
  std::vector<int> devices = {0};  // of cuda, used together; of `auto` as far as they can be used; empty: all there are
  FindImage find_image;            // of cuda and emulator: kernels::find_kernel_image
  FallbackNotice notice;           // of auto; called from any thread, at most once for each device
  CudaLimits limits = {};          // of cuda, each device
  AllocateHostMemory allocate = {};  // empty: what each backend gives
  std::string cuda_library;          // empty: the system's; see driver::Driver::open
};

// `executor` must outlive the backend.
Result<std::unique_ptr<Backend>> select_backend(const BackendRequest& request, Executor& executor);

// The kernels for the blocks of `.ptz` on cuda or emulator; null for other names, which mean the CPU. `executor` must
// outlive them.
Result<std::unique_ptr<BlockKernels>> select_block_kernels(const BackendRequest& request, Executor& executor);

}  // namespace ptxkit::codec
