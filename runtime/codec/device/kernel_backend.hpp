// Runs this project's kernels on a Machine: the backends cuda and emulator are this class with two machines.
#pragma once

#include <memory>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/device/machine.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::codec {

// `executor` copies between items and staging memory; `throttle`, if not null, is held meanwhile. Both must outlive the
// backend. The backend is thread-safe; batches of several threads share the queues of the machine.
std::unique_ptr<Backend> make_kernel_backend(std::unique_ptr<Machine> machine, Executor& executor,
                                             scheduler::Throttle* throttle = nullptr);

}  // namespace ptxkit::codec
