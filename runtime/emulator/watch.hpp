// Launches that record more than their outcome: which threads reach given PTX lines, and the addresses that they access
// there; how often each instruction was executed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/emulator/emulator.hpp"

namespace ptxkit::emulator {

// A thread that executed a watched line, with one address that it accessed there if there is one.
struct Visit {
  uint32_t line = 0;
  ThreadId thread;
  uint64_t times = 0;
  bool has_address = false;
  std::string object;  // as in Fault
  int64_t object_offset = 0;
  uint64_t access_bytes = 0;
};

inline constexpr size_t kMaxWatchedLines = 255, kMaxVisits = 1 << 16;

// An instruction of the module, and how often it was executed: by warps, also where the guard held for no lane, which
// Statistics::warp_instructions counts, and by threads whose guard held.
struct InstructionCount {
  uint32_t function = 0, instruction = 0;  // indices in ptx::Module::functions and ptx::Function::instructions
  uint64_t warps = 0, threads = 0;
};

struct CountedOutcome {
  Outcome outcome;
  std::vector<InstructionCount> counts;  // in program order; only instructions that were executed
};

// The same as launch(), with counts.
Result<CountedOutcome> launch_counted(const Program& program, std::string_view entry, const LaunchShape& shape,
                                      std::span<const Argument> arguments, const LaunchOptions& options = {});

struct WatchedOutcome {
  Outcome outcome;
  std::vector<Visit> visits;  // by block, thread and line; only the first kMaxVisits different ones
};

// The same as launch(), with a record of `lines` (line numbers of the PTX). Requires: at most kMaxWatchedLines lines.
Result<WatchedOutcome> launch_watched(const Program& program, std::string_view entry, const LaunchShape& shape,
                                      std::span<const Argument> arguments, std::span<const uint32_t> lines,
                                      const LaunchOptions& options = {});

}  // namespace ptxkit::emulator
