// The outcome of a launch as JSON: what `ptx-debug run --json` writes (docs/schemas/run-1.schema.json).
#pragma once

#include <string>
#include <string_view>

#include "runtime/emulator/emulator.hpp"

namespace ptxkit {

inline constexpr std::string_view kRunSchema = "ptxkit-run-1";

// How a launch on a GPU ended.
struct GpuEnd {
  std::string device;  // "NVIDIA H200, sm_90, driver for CUDA 13.0"
  int status = 0;      // CUresult of the wait
  bool timed_out = false, interrupted = false;
  struct Fault {
    std::string kind, message, next_step;
  } fault;  // `kind` is empty if there was none
};

// `file` names the PTX. The text ends with a line end and holds no byte that a terminal would act on.
std::string outcome_json(const emulator::Outcome& outcome, const std::string& file, const std::string& entry);
std::string outcome_json(const GpuEnd& end, const std::string& file, const std::string& entry);

}  // namespace ptxkit
