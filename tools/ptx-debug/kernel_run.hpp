// One launch as a command line asks for it, apart from where it runs.
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
  std::vector<ArgumentSpec> arguments;  // in the order of the parameters, then those of `bindings`
  std::vector<std::string> bindings;    // variables of the module that hold what the last arguments say

  // The pieces of all arguments: each has a buffer of its own or none.
  std::vector<const ArgumentSpec*> pieces() const {
    std::vector<const ArgumentSpec*> all;
    for (const ArgumentSpec& argument : arguments)
      for_each_piece(argument, [&](const ArgumentSpec& piece) { all.push_back(&piece); });
    return all;
  }
};

// What a GPU made of it.
struct GpuOutcome {
  std::string device;        // "NVIDIA H200, sm_90, driver for CUDA 13.0"
  int status = 0;            // CUresult of the wait; 0 where it ended well
  bool timed_out = false;    // still running at the deadline
  bool interrupted = false;  // still running when it was to stop
  bool is_running() const { return timed_out || interrupted; }
  // For each piece what its buffer holds now; nothing for scalars, and where the context died with the buffer.
  std::vector<std::optional<std::vector<std::byte>>> buffers;
};

// Runs it on device $PTXKIT_DEVICE (default 0) and waits for its end, until `stop`, or at most `deadline_seconds` where
// that is not 0. A kernel that is still running then cannot be stopped: the caller has to leave with std::_Exit.
// Errors: no driver or device, text that the driver refuses, arguments that do not fit the parameters, a launch that is
// refused.
Result<GpuOutcome> run_on_gpu(const KernelRun& run, double deadline_seconds, const std::atomic<bool>& stop);

}  // namespace ptxkit::tools
