#include "analyzer/instrument/launch_markers.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <ranges>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/analyze/identity.hpp"
#include "analyzer/analyze/place.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/instrument/sites.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "support/json.hpp"

namespace ptxkit::instrument {
namespace {

using ptx::Function;
using ptx::Instruction;
using ptx::InstructionId;
constexpr uint64_t kLastLane = 31;

// The markers of an entry: number -> places, "kernels/pages/zero_page.cpp:22".
using Places = std::map<uint32_t, std::set<std::string>>;

// The only instruction that writes a register; kNone if there are several or none.
InstructionId writer_of(const Function& function, ptx::RegId reg) {
  InstructionId writer = ptx::kNone;
  for (InstructionId id = 0; id < function.instructions.size(); ++id) {
    bool writes = false;
    ptx::for_each_register(
        function, function.instructions[id],
        [&](uint32_t, const ptx::Operand& operand, bool written) { writes |= written && operand.id == reg; });
    if (writes && writer != ptx::kNone) return ptx::kNone;
    if (writes) writer = id;
  }
  return writer;
}

bool is_integer(const ptx::Operand& operand, uint64_t value) {
  return operand.kind == ptx::OperandKind::integer && operand.value == value;
}

// Whether a branch asks for the first lane of the warp or the first thread of the CTA, which set the markers:
// setp.eq %p, %r, 0 with %r a special register, or its lowest five bits.
bool asks_for_first_thread(const Function& function, const Instruction& branch) {
  if (!branch.guard) return false;
  const InstructionId compare = writer_of(function, branch.guard.reg);
  if (compare == ptx::kNone || function.instructions[compare].op != ptx::Op::setp) return false;
  const ptx::Comparison comparison = ptx::comparison_of(function, function.instructions[compare]);
  const auto compared = function.operands(function.instructions[compare]);
  if (comparison != ptx::Comparison::eq && comparison != ptx::Comparison::ne) return false;
  if (compared.size() != 3 || compared[1].kind != ptx::OperandKind::reg || !is_integer(compared[2], 0)) return false;
  const InstructionId index = writer_of(function, compared[1].id);
  if (index == ptx::kNone) return false;
  const Instruction& instruction = function.instructions[index];
  const auto operands = function.operands(instruction);
  if (instruction.op == ptx::Op::mov) return operands[1].kind == ptx::OperandKind::special;
  return instruction.op == ptx::Op::and_ && is_integer(operands.back(), kLastLane);
}

// The branch by which only the first thread comes to a block; kNone if its code is not behind such a branch.
InstructionId branch_to(const flow::Graph& graph, flow::BlockId block) {
  const Function& function = graph.function();
  while (graph.predecessors(block).size() == 1) {
    const flow::BlockId before = graph.predecessors(block).front();
    if (graph.successors(before).size() != 1) {
      const InstructionId last = graph.last(before);
      return asks_for_first_thread(function, function.instructions[last]) ? last : ptx::kNone;
    }
    block = before;
  }
  return ptx::kNone;
}

// The fence that ends a marker's code; the marker itself if the block has none.
InstructionId end_of_marker(const flow::Graph& graph, InstructionId marker) {
  for (InstructionId id = marker; id < graph.block(graph.block_of(marker)).end; ++id) {
    if (graph.function().instructions[id].op == ptx::Op::membar) return id;
  }
  return marker;
}

// The place of an instruction that sets a marker; empty for other instructions.
std::string place_of_marker(const ptx::Module& module, const Function& function, InstructionId id,
                            const std::set<std::string>& places) {
  const Instruction& instruction = function.instructions[id];
  if (instruction.op != ptx::Op::atom || instruction.space != ptx::Space::global) return {};
  for (const report::SourcePlace& source : report::source_places(module, instruction.location)) {
    std::string place = fmt::format("{}:{}", source.file, source.line);
    if (places.contains(place)) return place;
  }
  return {};
}

Places places_of(const Json& markers) {
  Places places;
  for (const Json& each : markers) places[each.at("id").get<uint32_t>()].insert(each.at("where").get<std::string>());
  return places;
}

}  // namespace

bool is_launch_file(std::string_view json) {
  const Json root = Json::parse(json, nullptr, false);
  return root.is_object() && root.contains("entries");
}

Result<MarkerMap> launch_markers(std::string_view json, const ptx::Module& module, const std::string& path) {
  const auto refuse = [&](const std::string& what, const std::string& todo) { return fail(what, path, todo); };
  const std::string launch_of_debug_build =
      "give the launch file of a debug build, such as build/ptx/NAME.sm_80.debug.launch.json";
  MarkerMap map;
  std::string kernel;
  Places places;
  try {
    const Json root = Json::parse(json);
    for (const auto& [name, entry] : root.at("entries").items()) {
      if (!entry.contains("markers")) continue;
      if (!kernel.empty())
        return refuse(fmt::format("markers of {} and of {}", kernel, name), "give a file with one entry");
      kernel = name;
      places = places_of(entry.at("markers"));
      for (const Json& parameter : entry.at("parameters")) {
        if (parameter.at("name") != name + "_debug_buffer") continue;
        const uint64_t bytes = parameter.at("bytes");
        if (bytes % 16 != 0 || bytes / 16 < 2 || bytes / 16 - 1 > UINT32_MAX) {
          return refuse(fmt::format("a debug buffer of {} bytes", bytes), launch_of_debug_build);
        }
        map.records = static_cast<uint32_t>(bytes / 16 - 1);
      }
    }
  } catch (const Json::exception& error) {
    const std::string_view what = error.what();
    return refuse(fmt::format("no launch file: {}", what.substr(what.find("] ") + 2)), launch_of_debug_build);
  }
  if (kernel.empty() || places.empty()) return refuse("no entry has markers", launch_of_debug_build);
  if (!std::has_single_bit(map.records)) {
    return refuse(fmt::format("the debug buffer of {} has no size 16 * (N + 1), N a power of two", kernel),
                  launch_of_debug_build);
  }
  const auto function = std::ranges::find(module.functions, kernel, &Function::name);
  if (function == module.functions.end() || !function->has_body) {
    return refuse(fmt::format("these are markers of {}, and {} has no such kernel", kernel, module.path),
                  "give the PTX of the same debug build");
  }
  map.file = module.path;
  map.xxh128 = report::xxh128_hex(module.text);
  map.is_set_by_author = true;

  std::set<std::string> all_places;
  for (const auto& [number, of] : places) all_places.insert(of.begin(), of.end());
  const flow::Graph graph(*function);
  Sites sites;
  std::map<std::string, std::vector<InstructionId>> found;
  for (InstructionId id = 0; id < function->instructions.size(); ++id) {
    const std::string place = place_of_marker(module, *function, id, all_places);
    if (place.empty()) continue;
    sites[id] = {MarkerKind::own, id};
    found[place].push_back(id);
  }
  // The other threads pass by a marker; the thread that sets it does not.
  for (const auto& [place, ids] : found) {
    for (const InstructionId id : ids) {
      const InstructionId branch = branch_to(graph, graph.block_of(id));
      if (branch != ptx::kNone) sites[branch] = {MarkerKind::own, branch};
    }
  }
  for (const auto& [number, of] : places) {
    Marker marker;
    std::set<uint32_t> lines;
    bool is_last = true, is_described = false;
    std::string source;
    for (const std::string& place : of) {
      source += source.empty() ? place : " or " + place;
      for (const InstructionId id : found[place]) {
        if (!is_described) marker = describe(module, *function, MarkerKind::own, id);
        is_described = true;
        const Ahead ahead = ahead_of(module, *function, graph, sites, id, end_of_marker(graph, id));
        lines.insert(ahead.lines.begin(), ahead.lines.end());
        is_last = is_last && !ahead.has_marker;
      }
    }
    if (!is_described) continue;  // its code was never reached, so the text lacks it
    marker.id = number;
    marker.source = source;
    marker.next_lines.assign(lines.begin(), lines.end());
    marker.is_last = is_last;
    map.markers.push_back(std::move(marker));
  }
  if (map.markers.empty()) {
    return refuse(fmt::format("{} sets none of the markers", module.path), "give the PTX of the same debug build");
  }
  return map;
}

}  // namespace ptxkit::instrument
