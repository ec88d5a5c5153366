// From a name on a command line to a backend. A backend named outright is used or refused with the reason. `auto` takes
// the GPU when there is a usable one and the CPU otherwise; if the GPU fails later, it goes on with the CPU, says so
// once, and the result is the same.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/backend/kernels/machine.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/executor.hpp"

namespace ptxkit::codec {

// Told why the CPU is used although `auto` was asked for. `matters`: something is broken that the user may want to
// repair; otherwise there is simply no GPU.
using FallbackNotice = std::function<void(const std::string& message, bool matters)>;

struct BackendRequest {
  std::string name = "auto";  // auto, cpu, emulator, cuda
  int device = 0;             // of cuda
  FindImage find_image;       // of cuda and emulator: kernels::find_kernel_image
  FallbackNotice notice;      // of auto; called from any thread, at most once
  std::string cuda_library;   // empty: the system's; see driver::Driver::open
};

// `executor` must outlive the backend.
Result<std::unique_ptr<Backend>> select_backend(const BackendRequest& request, Executor& executor);

// Runs every batch on `primary` until one fails as a whole; that batch and all later ones run on `substitute`, after
// `notice`. Both must support what is asked of them; items of a failed batch keep nothing of the first attempt.
std::unique_ptr<Backend> with_fallback(std::unique_ptr<Backend> primary, std::unique_ptr<Backend> substitute,
                                       FallbackNotice notice);

}  // namespace ptxkit::codec
