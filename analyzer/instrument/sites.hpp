// The instructions at which a kernel sets markers, and what its threads may run between two of them.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "analyzer/flow/graph.hpp"
#include "analyzer/instrument/instrument.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::instrument {

// A marker at an instruction. `entry` has none: it stands behind the opening brace.
struct Site {
  MarkerKind kind;
  ptx::InstructionId instruction;
};
using Sites = std::map<ptx::InstructionId, Site>;  // at most one for each instruction

// Whether the marker is set only by threads for which the instruction's guard holds.
bool has_guard(const ptx::Function& function, const Site& site);

// What a thread may run from an instruction on before it sets another marker. A marker with a guard may be passed.
struct Ahead {
  std::vector<uint32_t> lines;  // ascending
  bool has_marker = false;      // whether it may come to another marker
};
Ahead ahead_of(const ptx::Module& module, const ptx::Function& function, const flow::Graph& graph, const Sites& sites,
               std::optional<ptx::InstructionId> own, ptx::InstructionId first);

// A marker without id and next lines.
Marker describe(const ptx::Module& module, const ptx::Function& function, MarkerKind kind, ptx::InstructionId id);

}  // namespace ptxkit::instrument
