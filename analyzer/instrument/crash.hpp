// Where a kernel died or hangs, from the debug buffer that it left behind: the last marker of every thread, what each
// may have run after it, and what the rules have to say of exactly those instructions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyzer/instrument/instrument.hpp"

namespace ptxkit::instrument {

struct Record {
  uint32_t id = 0, thread = 0;
  uint64_t number = 0;  // of the marker in the whole run, from 0
};

struct DebugBuffer {
  uint64_t marker_count = 0;     // set in the whole run
  uint64_t lost_count = 0;       // overwritten in the ring
  uint64_t unwritten_count = 0;  // counted, but their threads ended before they wrote them
  std::vector<Record> records;   // by number
};

// Errors: a size that is not map.buffer_bytes(), ids that the map does not have.
Result<DebugBuffer> read_debug_buffer(std::span<const std::byte> bytes, const MarkerMap& map, const std::string& path);

// Threads that stand behind one marker.
struct Standing {
  const Marker* marker = nullptr;
  std::vector<uint32_t> threads;  // linear in the grid, ascending
  uint64_t last_number = 0;       // of the latest of their records
  // The loop that one of these threads went round most often among its records, where that is often (3 or more times).
  const Marker* loop = nullptr;
  uint32_t turns = 0;
};

struct Crash {
  size_t thread_count = 0, ended_count = 0;  // of those with a record
  std::vector<Standing> standing;            // threads that did not end; the group with the latest record first
  bool is_waiting = false;                   // the last marker of all of them is at a barrier
};
Crash locate(const MarkerMap& map, const DebugBuffer& buffer);

// What ended the run, as far as the caller knows.
struct Ending {
  std::optional<int> error;  // CUresult
  bool deadline = false;     // it was still running
};

// The likely cause: a rule, and the line that it speaks of.
struct Suspect {
  std::string rule;   // "F051"
  uint32_t line = 0;  // in the PTX
  std::string ptx, source;
  std::string message;  // of the rule's finding, or what the markers say
};
// Best first; empty where the markers and the rules say nothing. `module` is the text that was instrumented.
std::vector<Suspect> suspects(const ptx::Module& module, const Crash& crash, const Ending& ending);

}  // namespace ptxkit::instrument
