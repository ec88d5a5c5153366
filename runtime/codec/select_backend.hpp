// From a name on a command line to a backend. A backend named outright is used or refused with the reason. `auto` takes
// the GPU when there is a usable one and the CPU otherwise; if the GPU fails later, it goes on with the CPU, says so
// once, and the result is the same.
#pragma once

#include <memory>
#include <string>

#include "runtime/backend/kernels/machine.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/executor.hpp"
#include "runtime/scheduler/scheduled_backend.hpp"

namespace ptxkit::codec {

struct BackendRequest {
  std::string name = "auto";  // auto, cpu, emulator, cuda
  int device = 0;             // of cuda
  FindImage find_image;       // of cuda and emulator: kernels::find_kernel_image
  FallbackNotice notice;      // of auto; called from any thread, at most once
  std::string cuda_library;   // empty: the system's; see driver::Driver::open
};

// `executor` must outlive the backend.
Result<std::unique_ptr<Backend>> select_backend(const BackendRequest& request, Executor& executor);

}  // namespace ptxkit::codec
