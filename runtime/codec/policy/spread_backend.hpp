// Several devices as one backend: each batch is cut into pieces, and every device takes the next one when it has room
// for it. So a slow device does less, without anyone knowing a rate.
//
// When a device fails, the others do its pieces anew, and it gets no more. When none is left the batch fails, with the
// error of the last one; schedule() leaves that to the CPU.
#pragma once

#include <memory>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/policy/scheduled_backend.hpp"

namespace ptxkit::codec {

// At least one device. `notice` is called from any thread, once for each device that fails while others are left.
std::unique_ptr<Backend> spread(std::vector<std::unique_ptr<Backend>> devices, FallbackNotice notice);

}  // namespace ptxkit::codec
