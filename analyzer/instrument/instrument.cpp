#include "analyzer/instrument/instrument.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <ranges>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "analyzer/analyze/identity.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/instrument/sites.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"

namespace ptxkit::instrument {
namespace {

using ptx::Function;
using ptx::Instruction;
using ptx::InstructionId;
using ptx::Item;
using ptx::Module;

constexpr std::string_view kKindNames[] = {"entry", "loop", "barrier", "store", "load", "call", "exit", "own"};

bool calls_marked_code(const Module& module, const Function& function, const Instruction& call) {
  const ptx::Operand* target = ptx::call_parts(function, call).target;
  return target != nullptr && (target->kind != ptx::OperandKind::function || module.functions[target->id].has_body);
}

std::optional<MarkerKind> kind_of(const Module& module, const Function& function, InstructionId id) {
  const Instruction& instruction = function.instructions[id];
  switch (instruction.op) {
    case ptx::Op::bar:
    case ptx::Op::barrier:
    case ptx::Op::mbarrier:
      return MarkerKind::barrier;
    case ptx::Op::call:
      if (calls_marked_code(module, function, instruction)) return MarkerKind::call;
      return std::nullopt;
    default:
      break;
  }
  if (ptx::ends_thread(instruction)) {
    const bool leaves = function.is_entry || instruction.op != ptx::Op::ret;
    return leaves && instruction.op != ptx::Op::trap ? std::optional(MarkerKind::exit) : std::nullopt;
  }
  const ptx::Accesses accesses = ptx::accesses_of(function, id);
  if (accesses.count == 0) return std::nullopt;
  const bool only_loads = std::all_of(accesses.items, accesses.items + accesses.count,
                                      [](const ptx::Access& access) { return access.kind == ptx::AccessKind::load; });
  return only_loads ? MarkerKind::load : MarkerKind::store;
}

// By instruction, at most one each. A retreating edge of the reverse postorder leads to every loop, natural or not.
Sites sites_of(const Module& module, const Function& function, const flow::Graph& graph, KindSet kinds) {
  Sites sites;
  for (InstructionId id = 0; id < function.instructions.size(); ++id) {
    const auto kind = kind_of(module, function, id);
    if (kind && (kinds & bit(*kind))) sites[id] = {*kind, id};
  }
  if (kinds & bit(MarkerKind::loop)) {
    for (const flow::BlockId from : graph.reverse_postorder()) {
      for (const flow::BlockId to : graph.successors(from)) {
        if (graph.order_index(to) > graph.order_index(from)) continue;
        const InstructionId head = graph.block(to).first;
        sites[head] = {MarkerKind::loop, head};
      }
    }
  }
  return sites;
}

// The texts that go in: registers and set-up of a function, and markers.
class Writer {
 public:
  Writer(const Module& module, const Options& options) : wide_(module.address_size == 64), options_(options) {
    while (module.text.find(prefix_) != std::string_view::npos) prefix_ += "x";
  }

  std::string parameter(const Function& function) const {
    return fmt::format(".param .{} {}_debug_buffer", word(), function.name);
  }
  // Where functions that kernels call find the buffer: written by every thread that starts, with the same value.
  std::string variable() const { return fmt::format(".global .align 8 .{} {}current;\n", word(), prefix_); }

  std::string set_up(const Function& function, bool shares_buffer, uint32_t id) const {
    std::string lines = fmt::format(
        "\n.reg .b32 %{0}thread, %{0}a, %{0}b, %{0}slot;\n.reg .b{1} %{0}buffer, %{0}record;\n.reg .b64 %{0}number;\n",
        prefix_, wide_ ? 64 : 32);
    if (function.is_entry) {
      lines += fmt::format("ld.param.{1} %{0}buffer, [{2}_debug_buffer];\n", prefix_, word(), function.name);
      if (shares_buffer) lines += fmt::format("st.volatile.global.{1} [{0}current], %{0}buffer;\n", prefix_, word());
    } else {
      lines += fmt::format("ld.volatile.global.{1} %{0}buffer, [{0}current];\n", prefix_, word());
    }
    lines += fmt::format("cvta.to.global.{1} %{0}buffer, %{0}buffer;\n", prefix_, word());
    // ((ctaid.z * nctaid.y + ctaid.y) * nctaid.x + ctaid.x) * ntid.z + tid.z, and so on down to tid.x
    lines += fmt::format("mov.u32 %{0}thread, %ctaid.z;\n", prefix_);
    for (const auto& [count, index] : {std::pair("%nctaid.y", "%ctaid.y"),
                                       {"%nctaid.x", "%ctaid.x"},
                                       {"%ntid.z", "%tid.z"},
                                       {"%ntid.y", "%tid.y"},
                                       {"%ntid.x", "%tid.x"}}) {
      lines +=
          fmt::format("mov.u32 %{0}a, {1};\nmov.u32 %{0}b, {2};\nmad.lo.u32 %{0}thread, %{0}thread, %{0}a, %{0}b;\n",
                      prefix_, count, index);
    }
    return lines + marker("", id);
  }

  // `guard` is "", "@%p " or "@!%p ".
  std::string marker(std::string_view guard, uint32_t id) const {
    std::string lines;
    const auto add = [&](const std::string& line) { lines += fmt::format("{}{}\n", guard, line); };
    add(fmt::format("atom.global.add.u32 %{0}slot, [%{0}buffer], 1;", prefix_));
    add(fmt::format("cvt.u64.u32 %{0}number, %{0}slot;", prefix_));
    add(fmt::format("and.b32 %{0}slot, %{0}slot, {1};", prefix_, options_.records - 1));
    add(fmt::format("mad.{1}.u32 %{0}record, %{0}slot, 16, %{0}buffer;", prefix_, wide_ ? "wide" : "lo"));
    add(fmt::format("mov.u32 %{0}a, {1};", prefix_, id));
    add(fmt::format("st.global.v2.u32 [%{0}record+16], {{%{0}a, %{0}thread}};", prefix_));
    add(fmt::format("st.global.u64 [%{0}record+24], %{0}number;", prefix_));
    add("membar.sys;");
    return lines;
  }

 private:
  std::string_view word() const { return wide_ ? "u64" : "u32"; }

  bool wide_;
  Options options_;
  std::string prefix_ = "ptxkit_mark_";
};

std::string guard_text(const Function& function, const Site& site) {
  if (!has_guard(function, site)) return {};
  const ptx::Guard guard = function.instructions[site.instruction].guard;
  return fmt::format("@{}{} ", guard.negated ? "!" : "", function.registers[guard.reg].name());
}

struct Insertion {
  size_t at;
  std::string text;
};

size_t body_begin(const Function& function) {
  for (const Item& item : function.items) {
    if (item.kind == Item::Kind::open_brace) return item.end;
  }
  return function.end;
}

// Behind the last parameter of the entry that is declared or defined at `at`, or, where it has no list, one of its own.
Insertion parameter_insertion(const Module& module, size_t at, const Function& function, const std::string& parameter) {
  const std::string_view text = module.text;
  const size_t name_end = text.find(function.name, text.find(".entry", at) + 6) + function.name.size();
  const size_t open = text.find_first_not_of(" \t\r\n", name_end);
  if (open == std::string_view::npos || text[open] != '(') return {name_end, fmt::format("({})", parameter)};
  const size_t close = std::min(text.find(')', open), text.size());
  const bool is_empty = text.find_first_not_of(" \t\r\n", open + 1) == close;
  return {close, (is_empty ? "" : ", ") + parameter};
}

// Past the ';' that ends the statement, comments aside: those hold no marker's instruction.
size_t statement_end(const Module& module, const Instruction& instruction) {
  return std::min(module.text.find(';', instruction.opcode_at), module.text.size() - 1) + 1;
}

}  // namespace

std::string_view text(MarkerKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

Result<KindSet> parse_kinds(std::string_view list) {
  if (list == "all") return (1u << kMarkerKindCount) - 1;
  KindSet kinds = bit(MarkerKind::entry);
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view word = list.substr(begin, end - begin);
    const std::span kinds_inserted(kKindNames, kMarkerKindCount);
    const auto found = std::ranges::find_if(
        kinds_inserted, [&](std::string_view name) { return word == name || word == std::string(name) + "s"; });
    if (found == kinds_inserted.end() && word != "entries")
      return fail(fmt::format("unknown kind of marker '{}'", word), {},
                  "give all, or a list of entry, loop, barrier, store, load, call, exit");
    if (word != "entries") kinds |= 1u << (found - kinds_inserted.begin());
    begin = end + 1;
  }
  return kinds;
}

const Marker* MarkerMap::find(uint32_t id) const {
  if (id >= 1 && id <= markers.size() && markers[id - 1].id == id) return &markers[id - 1];
  const auto found = std::ranges::find(markers, id, &Marker::id);
  return found == markers.end() ? nullptr : &*found;
}

Result<Instrumented> instrument(const Module& module, const Options& options) {
  if (!std::has_single_bit(options.records))
    return fail(fmt::format("records: expected a power of two, found {}", options.records));
  const auto is_defined_entry = [](const Function& function) { return function.is_entry && function.has_body; };
  if (std::ranges::none_of(module.functions, is_defined_entry)) return fail("there is no kernel in it", module.path);
  const bool shares_buffer = std::ranges::any_of(
      module.functions, [](const Function& function) { return !function.is_entry && function.has_body; });

  const Writer writer(module, options);
  Instrumented result;
  result.map.file = module.path;
  result.map.xxh128 = report::xxh128_hex(module.text);
  result.map.records = options.records;
  std::vector<Insertion> insertions;
  if (shares_buffer) {
    const auto first = std::ranges::find(module.items, Item::Kind::function, &Item::kind);
    insertions.push_back({first->at, writer.variable()});
  }
  for (const Item& item : module.items) {
    if (item.kind != Item::Kind::function || !module.functions[item.id].is_entry) continue;
    const Function& function = module.functions[item.id];
    insertions.push_back(parameter_insertion(module, item.at, function, writer.parameter(function)));
  }
  for (const Function& function : module.functions) {
    if (!function.has_body) continue;
    const flow::Graph graph(function);
    const auto sites = sites_of(module, function, graph, options.kinds);
    const auto add = [&](MarkerKind kind, InstructionId id, std::optional<InstructionId> own, InstructionId first) {
      Marker marker = describe(module, function, kind, id);
      marker.id = static_cast<uint32_t>(result.map.markers.size() + 1);
      marker.next_lines = ahead_of(module, function, graph, sites, own, first).lines;
      result.map.markers.push_back(std::move(marker));
      return result.map.markers.back().id;
    };
    insertions.push_back(
        {body_begin(function), writer.set_up(function, shares_buffer, add(MarkerKind::entry, 0, {}, 0))});
    for (const auto& [id, site] : sites) {
      const Instruction& instruction = function.instructions[id];
      const bool is_behind = site.kind == MarkerKind::call;
      const uint32_t marker = is_behind ? add(site.kind, id, {}, id + 1) : add(site.kind, id, id, id);
      insertions.push_back({is_behind ? statement_end(module, instruction) : instruction.at,
                            "\n" + writer.marker(guard_text(function, site), marker)});
    }
  }
  std::ranges::stable_sort(insertions, {}, &Insertion::at);
  size_t at = 0;
  for (const Insertion& insertion : insertions) {
    result.ptx += module.text.substr(at, insertion.at - at);
    result.ptx += insertion.text;
    at = insertion.at;
  }
  result.ptx += module.text.substr(at);
  const ptx::ParseResult parsed = ptx::parse(result.ptx, "instrumented text");
  if (!parsed.diagnostics.empty()) {
    return fail(fmt::format("cannot be instrumented: {}", parsed.diagnostics.front().message), module.path,
                "markers need PTX 2.3 and sm_20");
  }
  return result;
}

}  // namespace ptxkit::instrument
