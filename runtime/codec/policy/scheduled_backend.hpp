// Combines a device and the CPU into one backend. Batches go to the device, to the CPU, or are shared between both. The
// result does not depend on which of them does the work, nor on a failure of the device.
//
// When the device fails a whole batch (out of memory, launch failure, lost device), the CPU computes that batch again
// and all later ones, after one notice; partial results of the failed attempt are discarded. An operation that the
// device lacks runs on the CPU without a notice, because nothing failed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/codec/backend.hpp"

namespace ptxkit::codec {

// Receives the reason why the CPU is used although a device was requested. `matters` is true if something is broken
// that the user may want to repair, false if there simply is no GPU.
using FallbackNotice = std::function<void(const std::string& message, bool matters)>;

enum class Sharing : uint8_t {
  device_only,  // the CPU works only after the device has failed, or where the device lacks the operation
  // Each batch is taken from both ends: the device takes ranges from the back, the CPU items from the front.
  both,
};

// `notice` is called from any thread, at most once. With Sharing::both, `device` and `cpu` must not use the same
// Executor: each would wait for the other. The result is not thread-safe: one call at a time.
std::unique_ptr<Backend> schedule(std::unique_ptr<Backend> device, std::unique_ptr<Backend> cpu, Sharing sharing,
                                  FallbackNotice notice);

}  // namespace ptxkit::codec
