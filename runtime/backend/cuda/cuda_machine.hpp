// A GPU as a Machine: one stream, one device arena and one page-locked arena per queue. The arenas only ever grow, so a
// steady stream of batches allocates nothing, and nothing in here waits for more than one stream.
#pragma once

#include <memory>

#include "runtime/backend/kernels/machine.hpp"
#include "runtime/driver/context.hpp"

namespace ptxkit::codec {

Result<std::unique_ptr<Machine>> make_cuda_machine(driver::ContextPointer context, FindImage find_image);

}  // namespace ptxkit::codec
