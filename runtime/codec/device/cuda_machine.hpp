// A GPU as a Machine. All copies up share one stream, all large copies down share another, and each queue has one
// stream for its kernels; events keep the calls of a queue in order. So a copy up never waits for a copy down or for a
// kernel of another slice. Each queue has a device arena, and a staging arena for regions without page-locked memory of
// the caller. Arenas only grow, so a steady stream of batches allocates nothing, and nothing here waits for the whole
// device.
//
// A ledger accounts for the arenas. Its budget is the device's free memory at the start less a reserve, or less if the
// caller says so; each queue gets an equal share. A slice that needs more than the share is not submitted.
#pragma once

#include <memory>

#include "runtime/codec/device/machine.hpp"
#include "runtime/codec/threads/trace.hpp"
#include "runtime/driver/context.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {

struct CudaLimits {
  // Of device memory, and as much page-locked memory; 0: the free memory less a reserve.
  uint64_t memory_bytes = 0;
  unsigned queue_count = 6;        // slices at a time: two being copied up, two in a kernel, two being copied down
  size_t slice_bytes = 16u << 20;  // raw bytes of a slice: 256 chunks of 64 KiB
  // Measures what take_times returns, with two more events for each call. `trace` records the same times on lines of
  // the device; it must outlive the machine.
  bool measures_times = false;
  scheduler::Trace* trace = nullptr;
};

class LockedRanges;

// `page_locked`: shared by machines that copy directly from and to each other's host_memory(). Null: this machine only.
Result<std::unique_ptr<Machine>> make_cuda_machine(driver::ContextPointer context, FindImage find_image,
                                                   const CudaLimits& limits = {},
                                                   std::shared_ptr<LockedRanges> page_locked = nullptr);

}  // namespace ptxkit::codec
