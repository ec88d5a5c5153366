// Combines a device and the CPU into one backend. Batches go to the device, to the CPU, or are shared between both. The
// result does not depend on which of them does the work, nor on a failure of the device.
//
// How the work is shared, and what happens when the device fails, is in shared_work.hpp. An operation that the device
// lacks runs on the CPU without a notice, because nothing failed.
#pragma once

#include <memory>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/policy/shared_work.hpp"

namespace ptxkit::codec {

// `notice` is called from any thread, at most once. With Sharing::both, `device` and `cpu` must not use the same
// Executor: each would wait for the other. The result is not thread-safe: one call at a time.
std::unique_ptr<Backend> schedule(std::unique_ptr<Backend> device, std::unique_ptr<Backend> cpu, Sharing sharing,
                                  FallbackNotice notice);

}  // namespace ptxkit::codec
