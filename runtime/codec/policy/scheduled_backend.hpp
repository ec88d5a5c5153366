// A device and the CPU as one backend: batches go to the device, to the CPU, or to both from one queue, and whatever
// happens to the device the result is the same.
//
// Degradation is part of it. When the device fails a batch as a whole (out of memory, launch failure, lost device), the
// CPU computes that batch anew and all later ones, after one notice; items of the failed attempt keep nothing of it. An
// operation that the device lacks runs on the CPU without a word: nothing failed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/codec/backend.hpp"

namespace ptxkit::codec {

// Told why the CPU is used although a device was asked for. `matters`: something is broken that the user may want to
// repair; otherwise there is simply no GPU.
using FallbackNotice = std::function<void(const std::string& message, bool matters)>;

enum class Sharing : uint8_t {
  device_only,  // the CPU works only once the device has failed
  both,         // of each batch the device takes ranges from the back, the CPU items from the front
};

// `notice` is called from any thread, at most once. With Sharing::both the two must not use the same Executor: each
// would wait for the other's turn. One call at a time.
std::unique_ptr<Backend> schedule(std::unique_ptr<Backend> device, std::unique_ptr<Backend> cpu, Sharing sharing,
                                  FallbackNotice notice);

}  // namespace ptxkit::codec
