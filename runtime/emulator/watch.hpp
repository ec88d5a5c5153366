// A launch that records which threads reach given PTX lines, and the addresses that they access there.
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

inline constexpr size_t kMostWatchedLines = 255, kMostVisits = 1 << 16;

struct WatchedOutcome {
  Outcome outcome;
  std::vector<Visit> visits;  // by block, thread and line; only the first kMostVisits different ones
};

// The same as launch(), with a record of `lines` (line numbers of the PTX). Requires: at most kMostWatchedLines lines.
Result<WatchedOutcome> launch_watched(const Program& program, std::string_view entry, const LaunchShape& shape,
                                      std::span<const Argument> arguments, std::span<const uint32_t> lines,
                                      const LaunchOptions& options = {});

}  // namespace ptxkit::emulator
