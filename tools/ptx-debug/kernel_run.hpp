// One launch as the command line describes it, independent of the backend.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "runtime/emulator/emulator.hpp"
#include "support/result.hpp"
#include "tools/ptx-debug/argument_spec.hpp"

namespace ptxkit::tools {

struct KernelRun {
  std::string file, ptx;
  emulator::EntryInfo entry;
  uint32_t address_bits = 64;
  emulator::LaunchShape shape;
  std::vector<ArgumentSpec> arguments;  // one per parameter, then one per binding
  std::vector<std::string> bindings;    // module variables that the last arguments initialise

  // The pieces of all arguments, in order; each has at most one buffer.
  std::vector<const ArgumentSpec*> pieces() const {
    std::vector<const ArgumentSpec*> all;
    for (const ArgumentSpec& argument : arguments)
      for_each_piece(argument, [&](const ArgumentSpec& piece) { all.push_back(&piece); });
    return all;
  }
};

// The outcome of a KernelRun on a GPU.
struct GpuOutcome {
  std::string device;        // "NVIDIA H200, sm_90, driver for CUDA 13.0"
  int status = 0;            // CUresult of the wait; 0 on success
  bool timed_out = false;    // still running at the deadline
  bool interrupted = false;  // still running when `stop` was set
  bool is_running() const { return timed_out || interrupted; }
  // Final content of each piece's buffer; nothing for scalars, and for buffers that died with their context.
  std::vector<std::optional<std::vector<std::byte>>> buffers;
};

// Runs it on device $PTXKIT_DEVICE (default 0). Waits until the kernel ends, `stop` is set, or `deadline_seconds` have
// passed, where that is not 0. A kernel that is still running cannot be stopped: the caller must leave with std::_Exit.
// Errors: no driver or device, PTX that the driver rejects, arguments that do not fit the parameters, a launch that the
// driver rejects.
Result<GpuOutcome> run_on_gpu(const KernelRun& run, double deadline_seconds, const std::atomic<bool>& stop);

}  // namespace ptxkit::tools
