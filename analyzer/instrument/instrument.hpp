// Markers in PTX: an instrumented kernel writes down where its threads are, so that after a crash the last records say
// what each of them was doing.
//
// The buffer, a parameter behind the others named <kernel>_debug_buffer, is that of the DSL's debug builds
// (docs/dsl.md): 16 * (records + 1) bytes, zeroed, word 0 a counter, marker number n at 16 * (1 + n mod records) as {id
// u32, linear thread of the grid u32, n u64}. `records` is a power of two, so the ring cannot be left. Every record is
// followed by membar.sys: in host memory that is mapped, it is there whatever becomes of the kernel.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ptx/tree.hpp"
#include "support/result.hpp"

namespace ptxkit::instrument {

// Where markers stand: all but `call` before the instruction; `call` behind it, for what comes after the callee's own.
enum class MarkerKind : uint8_t { entry, loop, barrier, store, load, call, exit };
inline constexpr size_t kMarkerKindCount = 7;
std::string_view text(MarkerKind kind);  // "barrier"

using KindSet = uint32_t;  // bits 1 << MarkerKind
constexpr KindSet bit(MarkerKind kind) { return KindSet{1} << static_cast<unsigned>(kind); }
// Everything but loads, which are many.
inline constexpr KindSet kDefaultKinds = ((1u << kMarkerKindCount) - 1) & ~bit(MarkerKind::load);
Result<KindSet> parse_kinds(std::string_view list);  // "all", "stores,loops": singular or plural

struct Options {
  KindSet kinds = kDefaultKinds;  // `entry` is always there: it sets up the others
  uint32_t records = 4096;        // power of two
};

struct Marker {
  uint32_t id = 0;  // from 1, in program order
  MarkerKind kind = MarkerKind::entry;
  std::string function;
  uint32_t line = 0, column = 0;     // of the instruction, in the text that was instrumented
  std::string ptx;                   // the instruction
  std::string source;                // "match.cu:11" from .loc, empty without
  std::vector<uint32_t> next_lines;  // of the instructions that a thread may run before its next marker, ascending
};

struct MarkerMap {
  std::string file;    // that was instrumented
  std::string xxh128;  // of its text
  uint32_t records = 0;
  std::vector<Marker> markers;  // markers[i].id == i + 1

  uint64_t buffer_bytes() const { return 16 * (uint64_t{records} + 1); }
  const Marker* find(uint32_t id) const;  // null where there is none
};

struct Instrumented {
  std::string ptx;
  MarkerMap map;
};

// `module` must be free of diagnostics. Errors: no kernel in it; records that are no power of two; text that has no
// room for a parameter or is too old for markers (PTX 2.3, sm_20), with what the front end says of the outcome.
Result<Instrumented> instrument(const ptx::Module& module, const Options& options);

std::string to_json(const MarkerMap& map);
Result<MarkerMap> parse_marker_map(std::string_view json, const std::string& path);

}  // namespace ptxkit::instrument
