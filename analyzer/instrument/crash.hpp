// Locates a kernel's crash or hang from its debug buffer: the last marker of every thread, the code that each may have
// run after it, and the rules' findings about exactly these instructions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyzer/instrument/instrument.hpp"
#include "support/result.hpp"

namespace ptxkit::instrument {

struct Record {
  uint32_t id = 0, thread = 0;
  uint64_t number = 0;  // of the marker in the whole run, counted from 0
  uint64_t value = 0;   // of an author's marker
};

struct DebugBuffer {
  uint64_t marker_count = 0;     // over the whole run
  uint64_t lost_count = 0;       // overwritten in the ring
  uint64_t unwritten_count = 0;  // counted, but their threads ended before writing them
  std::vector<Record> records;   // sorted by number
};

// Errors: a size other than map.buffer_bytes(), ids that the map does not have.
Result<DebugBuffer> read_debug_buffer(std::span<const std::byte> bytes, const MarkerMap& map, const std::string& path);

// Threads whose last marker is the same.
struct Standing {
  const Marker* marker = nullptr;
  std::vector<uint32_t> threads;  // linear indices in the grid, ascending
  uint64_t last_number = 0;       // of their latest record
  uint64_t last_value = 0;        // in it
  // The loop with the most iterations of one of these threads among its records, if there are at least 3.
  const Marker* loop = nullptr;
  uint32_t turns = 0;
};

struct Crash {
  size_t thread_count = 0, ended_count = 0;  // counts of threads with a record
  std::vector<Standing> at_last;             // of those that ended: behind a last marker of the author
  std::vector<Standing> standing;            // threads that did not end; the group with the latest record first
  bool is_waiting = false;                   // the last marker of all of them is at a barrier
};
Crash locate(const MarkerMap& map, const DebugBuffer& buffer);

// How the run ended, as far as the caller knows.
struct Ending {
  std::optional<int> error;  // CUresult
  bool deadline = false;     // still running at the deadline
};

// A likely cause: a rule, and the line that its finding is about.
struct Suspect {
  std::string rule;   // "F051"
  uint32_t line = 0;  // in the PTX
  std::string ptx, source;
  std::string message;  // of the rule's finding, or what the markers show
};
// Best first; empty where neither markers nor rules suggest a cause. `module` is the instrumented source text.
std::vector<Suspect> suspects(const ptx::Module& module, const Crash& crash, const Ending& ending);

}  // namespace ptxkit::instrument
