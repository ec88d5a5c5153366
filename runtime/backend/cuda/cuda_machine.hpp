// A GPU as a Machine: one stream, one device arena and one page-locked arena per queue. The arenas only ever grow, so a
// steady stream of batches allocates nothing, and nothing in here waits for more than one stream.
//
// What the arenas take is kept in a ledger. Its budget is the device's free memory at the start, less a reserve, unless
// the caller says less; each queue has its share of it. A slice that needs more than the share is never submitted.
#pragma once

#include <memory>

#include "runtime/backend/kernels/machine.hpp"
#include "runtime/driver/context.hpp"

namespace ptxkit::codec {

struct CudaLimits {
  std::uint64_t memory_bytes = 0;  // of the device, and as much page-locked memory; 0: what is free, less a reserve
  unsigned queue_count = 4;        // slices at a time: copies both ways and two kernels at once
};

Result<std::unique_ptr<Machine>> make_cuda_machine(driver::ContextPointer context, FindImage find_image,
                                                   const CudaLimits& limits = {});

}  // namespace ptxkit::codec
