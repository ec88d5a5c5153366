// The backend that runs this project's kernels on a Machine: cuda and emulator are this class over two machines.
#pragma once

#include <memory>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/device/machine.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::codec {

// `executor` copies between items and staging memory, and `throttle`, if there is one, is held meanwhile; both must
// outlive the backend. Any thread may call it; batches of several threads share the machine's queues.
std::unique_ptr<Backend> make_kernel_backend(std::unique_ptr<Machine> machine, Executor& executor,
                                             scheduler::Throttle* throttle = nullptr);

}  // namespace ptxkit::codec
