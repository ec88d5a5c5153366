// See statistics.hpp.
#include "analyzer/inspect/statistics.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "analyzer/flow/dominators.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/inspect/module_info.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/isa.hpp"
#include "support/json.hpp"
#include "support/printable.hpp"

namespace ptxkit::inspect {
namespace {

using ptx::AccessKind;
using ptx::Function;
using ptx::Instruction;
using ptx::Op;
using ptx::Space;

using Accesses = std::map<std::tuple<Space, AccessKind, uint32_t>, uint32_t>;

// Parameters are apart from what facts.hpp calls an access: their addresses are constants.
void count_accesses(const Function& function, ptx::InstructionId id, Accesses& accesses) {
  const Instruction& instruction = function.instructions[id];
  if (instruction.space == Space::param && (instruction.op == Op::ld || instruction.op == Op::st)) {
    const auto kind = instruction.op == Op::ld ? AccessKind::load : AccessKind::store;
    ++accesses[{Space::param, kind, instruction.vector * ptx::byte_width(instruction.type())}];
    return;
  }
  const ptx::Accesses found = ptx::accesses_of(function, id);
  for (unsigned i = 0; i < found.count; ++i) {
    ++accesses[{found.items[i].space, found.items[i].kind, found.items[i].extent_bytes}];
  }
}

std::vector<RegisterCount> registers_of(const Function& function) {
  std::map<ptx::Type, RegisterCount> by_type;
  for (const ptx::RegisterDeclaration& declaration : function.register_declarations) {
    by_type[declaration.type].declared_count += declaration.count == ptx::kNone ? 1 : declaration.count;
  }
  for (const ptx::Register& used : function.registers) ++by_type[used.type].used_count;
  std::vector<RegisterCount> registers;
  for (auto& [type, count] : by_type) {
    count.type = type;
    registers.push_back(count);
  }
  return registers;
}

void count_variable(const ptx::Variable& variable, FunctionStatistics& statistics) {
  if (variable.space == Space::shared && variable.is_unsized) statistics.uses_dynamic_shared = true;
  if (variable.space == Space::shared) statistics.shared_bytes += variable.size_bytes;
  if (variable.space == Space::local) statistics.local_bytes += variable.size_bytes;
  if (variable.space == Space::constant) statistics.constant_bytes += variable.size_bytes;
}

void count_variables(const ptx::Module& module, const Function& function, FunctionStatistics& statistics) {
  for (const ptx::VariableId id : function.variables) count_variable(module.variables[id], statistics);
  std::set<ptx::VariableId> named;
  for (const ptx::Operand& operand : function.operand_pool) {
    const bool is_variable = operand.kind == ptx::OperandKind::symbol ||
                             (operand.kind == ptx::OperandKind::address && operand.base == ptx::AddressBase::variable);
    if (is_variable && operand.id < module.variables.size() && module.variables[operand.id].function == ptx::kNone) {
      named.insert(operand.id);
    }
  }
  for (const ptx::VariableId id : named) count_variable(module.variables[id], statistics);
}

std::string_view space_name(Space space) { return space == Space::generic ? "generic" : ptx::text(space); }

// The kinds by how often they occur, the most frequent first.
std::vector<std::pair<std::string_view, uint32_t>> by_count(const std::map<std::string, uint32_t>& mix) {
  std::vector<std::pair<std::string_view, uint32_t>> kinds(mix.begin(), mix.end());
  std::ranges::stable_sort(kinds, std::greater<>(), [](const auto& kind) { return kind.second; });
  return kinds;
}

std::string text_of(const FunctionStatistics& statistics) {
  std::string out = fmt::format("{} {}\n", statistics.is_entry ? "kernel" : "function", statistics.name);
  out += fmt::format("  instructions {}, blocks {}, branches {}, calls {}\n", statistics.instruction_count,
                     statistics.block_count, statistics.branch_count, statistics.call_count);
  out += fmt::format("  loops {}, deepest {}{}; barriers: CTA {}, warp {}\n", statistics.loop_count,
                     statistics.deepest_loop, statistics.is_irreducible ? ", control flow irreducible" : "",
                     statistics.cta_barrier_count, statistics.warp_barrier_count);
  out += fmt::format("  bytes: parameters {}, shared {}{}, local {}, constant {}\n", statistics.parameter_bytes,
                     statistics.shared_bytes, statistics.uses_dynamic_shared ? " and dynamic" : "",
                     statistics.local_bytes, statistics.constant_bytes);
  if (!statistics.registers.empty()) {
    out += "  registers, used of declared:";
    for (const RegisterCount& count : statistics.registers) {
      out += fmt::format("{} {} {} of {}", &count == &statistics.registers.front() ? "" : ",", ptx::text(count.type),
                         count.used_count, count.declared_count);
    }
    out += '\n';
  }
  if (!statistics.accesses.empty()) {
    out += "  accesses by space, kind and bytes of a thread\n";
    for (const AccessCount& access : statistics.accesses) {
      out += fmt::format("    {:<16} {:<6} {:>4} {:>8}\n", space_name(access.space), text(access.kind),
                         access.bytes ? fmt::format("{}", access.bytes) : "-", access.count);
    }
  }
  out += "  instruction mix\n";
  for (const auto& [kind, count] : by_count(statistics.mix)) {
    out += fmt::format("    {:<28} {:>8} {:>6.1f} %\n", kind, count, 100.0 * count / statistics.instruction_count);
  }
  return out;
}

OrderedJson json_of(const FunctionStatistics& statistics) {
  OrderedJson json = {{"name", statistics.name},
                      {"entry", statistics.is_entry},
                      {"instructions", statistics.instruction_count},
                      {"blocks", statistics.block_count},
                      {"loops", statistics.loop_count},
                      {"deepest_loop", statistics.deepest_loop},
                      {"irreducible", statistics.is_irreducible},
                      {"branches", statistics.branch_count},
                      {"calls", statistics.call_count},
                      {"barriers", {{"cta", statistics.cta_barrier_count}, {"warp", statistics.warp_barrier_count}}},
                      {"bytes",
                       {{"parameters", statistics.parameter_bytes},
                        {"shared", statistics.shared_bytes},
                        {"dynamic_shared", statistics.uses_dynamic_shared},
                        {"local", statistics.local_bytes},
                        {"constant", statistics.constant_bytes}}},
                      {"registers", OrderedJson::array()},
                      {"accesses", OrderedJson::array()},
                      {"mix", OrderedJson::object()}};
  for (const RegisterCount& count : statistics.registers) {
    json["registers"].push_back(
        {{"type", ptx::text(count.type)}, {"declared", count.declared_count}, {"used", count.used_count}});
  }
  for (const AccessCount& access : statistics.accesses) {
    json["accesses"].push_back({{"space", space_name(access.space)},
                                {"kind", text(access.kind)},
                                {"bytes", access.bytes},
                                {"count", access.count}});
  }
  for (const auto& [kind, count] : by_count(statistics.mix)) json["mix"][std::string(kind)] = count;
  return json;
}

}  // namespace

std::string kind_of(std::string_view spelling) {
  const ptx::Opcode opcode = ptx::read_opcode(spelling);
  std::string kind(ptx::text(opcode.op));
  for (const ptx::OpcodeWord& each : opcode.words) {
    const bool says_width = each.word.kind == ptx::Word::Kind::type || each.word.kind == ptx::Word::Kind::vector;
    if (!says_width) kind.append(".").append(each.text);
  }
  return kind;
}

FunctionStatistics statistics_of(const ptx::Module& module, const Function& function) {
  FunctionStatistics statistics;
  statistics.name = function.name;
  statistics.is_entry = function.is_entry;
  statistics.instruction_count = static_cast<uint32_t>(function.instructions.size());
  Accesses accesses;
  for (ptx::InstructionId id = 0; id < function.instructions.size(); ++id) {
    const Instruction& instruction = function.instructions[id];
    ++statistics.mix[kind_of(instruction.spelling)];
    statistics.branch_count += ptx::is_branch(instruction);
    statistics.call_count += instruction.op == Op::call;
    const bool is_barrier = instruction.op == Op::bar || instruction.op == Op::barrier;
    const bool is_cta_barrier = ptx::is_cta_barrier(function, instruction);
    statistics.cta_barrier_count += is_cta_barrier;
    statistics.warp_barrier_count += is_barrier && !is_cta_barrier && ptx::is_warp_barrier(function, instruction);
    count_accesses(function, id, accesses);
  }
  for (const auto& [key, count] : accesses) {
    statistics.accesses.push_back({std::get<1>(key), std::get<0>(key), std::get<2>(key), count});
  }
  if (!function.instructions.empty()) {
    const flow::Graph graph(function);
    const flow::Loops loops(graph, flow::DominatorTree::dominators(graph));
    statistics.block_count = graph.size();
    statistics.loop_count = static_cast<uint32_t>(loops.all().size());
    for (const flow::Loop& loop : loops.all()) statistics.deepest_loop = std::max(statistics.deepest_loop, loop.depth);
    statistics.is_irreducible = loops.is_irreducible();
  }
  statistics.registers = registers_of(function);
  count_variables(module, function, statistics);
  statistics.parameter_bytes = parameter_layout(module, function).size_bytes;
  return statistics;
}

std::vector<FunctionStatistics> statistics_of(const ptx::Module& module) {
  std::vector<FunctionStatistics> all;
  for (const Function& function : module.functions) {
    if (function.has_body) all.push_back(statistics_of(module, function));
  }
  return all;
}

std::string statistics_text(const ptx::Module& module) {
  std::string out;
  for (const FunctionStatistics& statistics : statistics_of(module)) out += text_of(statistics);
  return out;
}

std::string statistics_json(const ptx::Module& module) {
  OrderedJson json = {{"path", module.path}, {"functions", OrderedJson::array()}};
  for (const FunctionStatistics& statistics : statistics_of(module)) json["functions"].push_back(json_of(statistics));
  return printable_json(json.dump(2, ' ', false, OrderedJson::error_handler_t::replace));
}

}  // namespace ptxkit::inspect
