// ptx-pack --measure-rates: what --policy auto of LZ4 decides by.
#pragma once

#include "runtime/codec/select_backend.hpp"
#include "support/result.hpp"

namespace ptxkit::pack {

// Measures for ten seconds on all cores and the GPU, and writes request.calibration_path. An error if another process
// measures for the same file at this moment.
Result<void> measure_rates(unsigned thread_count, const codec::BackendRequest& request);

}  // namespace ptxkit::pack
