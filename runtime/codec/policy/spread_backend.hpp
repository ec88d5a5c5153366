// Combines several devices into one backend. Each batch is cut into pieces, and a device takes the next piece when it
// has room for it. So a slow device does less, without any measured rate.
//
// When a device fails, the others redo its pieces and it gets no more. When none is left the batch fails with the error
// of the last device; schedule() then hands it to the CPU.
#pragma once

#include <memory>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/policy/scheduled_backend.hpp"
#include "runtime/codec/policy/shared_work.hpp"

namespace ptxkit::codec {

// `devices`: at least one. `notice` is called from any thread, once for each device that fails while others are left.
std::unique_ptr<Backend> spread(std::vector<std::unique_ptr<Backend>> devices, FallbackNotice notice);

}  // namespace ptxkit::codec
