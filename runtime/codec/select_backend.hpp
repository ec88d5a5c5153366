// From a name on a command line to a backend. A backend named outright is used or refused with the reason; `auto` takes the GPU when there is
// a usable one and the CPU otherwise, and says why in one sentence.
#pragma once

#include <memory>
#include <string>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/executor.hpp"

namespace ptxkit::codec {

struct BackendRequest {
  std::string name = "auto";  // auto, cpu, emulator, cuda
  int device = 0;             // of cuda
};

struct SelectedBackend {
  std::unique_ptr<Backend> backend;
  std::string note;           // why `auto` chose what it chose; may be empty
  bool note_matters = false;  // something is broken that the user may want to repair
};

// `executor` must outlive the backend.
Result<SelectedBackend> select_backend(const BackendRequest& request, Executor& executor);

}  // namespace ptxkit::codec
