// A GPU as a Machine. All copies up share one stream, all large copies down another, and each queue has one for its
// kernels; events keep what belongs to a queue in order. So a copy up never waits behind a copy down or a kernel of
// another slice. Each queue has a device arena and, for what the caller has no page-locked memory for, a staging arena.
// The arenas only ever grow, so a steady stream of batches allocates nothing, and nothing in here waits for a whole
// device.
//
// What the arenas take is kept in a ledger. Its budget is the device's free memory at the start, less a reserve, unless
// the caller says less; each queue has its share of it. A slice that needs more than the share is never submitted.
#pragma once

#include <memory>

#include "runtime/codec/device/machine.hpp"
#include "runtime/driver/context.hpp"

namespace ptxkit::codec {

struct CudaLimits {
  uint64_t memory_bytes = 0;       // of the device, and as much page-locked memory; 0: what is free, less a reserve
  unsigned queue_count = 6;        // slices at a time: two each on their way up, in a kernel, on their way down
  size_t slice_bytes = 16u << 20;  // raw bytes of a slice: 256 chunks of 64 KiB
};

class LockedRanges;

// `page_locked`: of all machines that are to copy from and to each other's host_memory where it lies; null: of this
// one.
Result<std::unique_ptr<Machine>> make_cuda_machine(driver::ContextPointer context, FindImage find_image,
                                                   const CudaLimits& limits = {},
                                                   std::shared_ptr<LockedRanges> page_locked = nullptr);

}  // namespace ptxkit::codec
