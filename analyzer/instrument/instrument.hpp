// Inserts markers into PTX. An instrumented kernel records where its threads are, so that after a crash the last
// records show what each of them was doing.
//
// The buffer is a last parameter named <kernel>_debug_buffer, in the format of the DSL's debug builds (docs/dsl.md): 16
// * (records + 1) bytes, zeroed, with a counter in word 0, and marker number n at 16 * (1 + n mod records) as {id u32,
// linear thread in the grid u32, n u64}. `records` is a power of two, so that indices stay within the ring. membar.sys
// follows every record: in mapped host memory it survives the kernel.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ptx/tree.hpp"
#include "support/result.hpp"

namespace ptxkit::instrument {

// Where markers lie: before the instruction; `call` after it, because the callee sets its own markers first. `own` is
// one that the kernel's author set (launch_markers.hpp); it is never inserted.
enum class MarkerKind : uint8_t { entry, loop, barrier, store, load, call, exit, own };
inline constexpr size_t kMarkerKindCount = 7;  // of those that are inserted
std::string_view text(MarkerKind kind);        // "barrier"

using KindSet = uint32_t;  // bits 1 << MarkerKind
constexpr KindSet bit(MarkerKind kind) { return KindSet{1} << static_cast<unsigned>(kind); }
// All kinds but loads, which are frequent.
inline constexpr KindSet kDefaultKinds = ((1u << kMarkerKindCount) - 1) & ~bit(MarkerKind::load);
Result<KindSet> parse_kinds(std::string_view list);  // "all", "stores,loops": singular or plural

struct Options {
  KindSet kinds = kDefaultKinds;  // `entry` is always included: it sets up the others
  uint32_t records = 4096;        // power of two
};

struct Marker {
  uint32_t id = 0;  // from 1, in program order; of an author's marker the number that it writes
  MarkerKind kind = MarkerKind::entry;
  std::string function;
  uint32_t line = 0, column = 0;     // of the instruction, in the original text
  std::string ptx;                   // the instruction
  std::string source;                // "match.cu:11" from .loc; empty without
  std::vector<uint32_t> next_lines;  // lines that a thread may run before its next marker, ascending
  bool is_last = false;              // of an author's marker: none follows it, so its threads may have ended
};

struct MarkerMap {
  std::string file;    // the instrumented file
  std::string xxh128;  // of the original text
  uint32_t records = 0;
  // Inserted markers: markers[i].id == i + 1. An author's: ascending ids, each of one or several places in the source.
  std::vector<Marker> markers;
  bool is_set_by_author = false;

  uint64_t buffer_bytes() const { return 16 * (uint64_t{records} + 1); }
  const Marker* find(uint32_t id) const;  // null where there is none
};

struct Instrumented {
  std::string ptx;
  MarkerMap map;
};

// Precondition: `module` is free of diagnostics. Errors: no kernel; `records` is not a power of two; the instrumented
// text does not parse, because there is no room for a parameter or because it is too old for markers (PTX 2.3, sm_20),
// with the front end's message.
Result<Instrumented> instrument(const ptx::Module& module, const Options& options);

std::string to_json(const MarkerMap& map);
Result<MarkerMap> parse_marker_map(std::string_view json, const std::string& path);

}  // namespace ptxkit::instrument
