#include "analyzer/instrument/sites.hpp"

#include <set>
#include <string>

#include <fmt/format.h>

#include "analyzer/analyze/place.hpp"
#include "support/printable.hpp"

namespace ptxkit::instrument {

using ptx::Function;
using ptx::Instruction;
using ptx::InstructionId;
using ptx::Module;

namespace {

uint32_t line_of(const Module& module, const Instruction& instruction) {
  return module.position(instruction.opcode_at).line;
}

std::string source_of(const Module& module, const Instruction& instruction) {
  const auto places = report::source_places(module, instruction.location);
  return places.empty() ? "" : fmt::format("{}:{}", places.front().file, places.front().line);
}

}  // namespace

bool has_guard(const Function& function, const Site& site) {
  const bool is_place = site.kind == MarkerKind::entry || site.kind == MarkerKind::loop || site.kind == MarkerKind::own;
  return !is_place && static_cast<bool>(function.instructions[site.instruction].guard);
}

Ahead ahead_of(const Module& module, const Function& function, const flow::Graph& graph, const Sites& sites,
               std::optional<InstructionId> own, InstructionId first) {
  std::set<uint32_t> lines;
  bool has_marker = false;
  std::set<InstructionId> seen;
  std::vector<InstructionId> open{first};
  while (!open.empty()) {
    const InstructionId id = open.back();
    open.pop_back();
    if (id >= function.instructions.size() || !seen.insert(id).second) continue;
    const Instruction& instruction = function.instructions[id];
    const auto site = sites.find(id);
    const bool is_marked = site != sites.end() && own != id;
    has_marker |= is_marked;
    const bool is_behind = is_marked && site->second.kind == MarkerKind::call;
    if (!is_marked || is_behind) lines.insert(line_of(module, instruction));
    if (is_marked && !has_guard(function, site->second)) continue;
    const flow::BlockId block = graph.block_of(id);
    if (id + 1 < graph.block(block).end) {
      open.push_back(id + 1);
    } else {
      for (const flow::BlockId next : graph.successors(block)) open.push_back(graph.block(next).first);
    }
  }
  return {{lines.begin(), lines.end()}, has_marker};
}

Marker describe(const Module& module, const Function& function, MarkerKind kind, InstructionId id) {
  Marker marker;
  marker.kind = kind;
  marker.function = function.name;
  if (id >= function.instructions.size()) {  // of an empty body
    marker.line = module.position(function.at).line;
    marker.column = module.position(function.at).column;
    return marker;
  }
  const Instruction& instruction = function.instructions[id];
  const ptx::Position position = module.position(instruction.at);
  marker.line = position.line;
  marker.column = position.column;
  marker.ptx = printable(report::statement_at(module, instruction.at));
  marker.source = source_of(module, instruction);
  return marker;
}

}  // namespace ptxkit::instrument
