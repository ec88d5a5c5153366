// Rules about calls and computed branches: F064, F065, F066.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/dominators.hpp"
#include "analyzer/flow/evaluate.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/engine/walk.hpp"
#include "support/plural.hpp"

namespace ptxkit::rules {

using flow::Source;
using ptx::FunctionId;
using ptx::Op;
using ptx::OperandKind;

namespace {

// Calls visit(instruction id, callee) for every direct call of a function.
template <class Visit>
void for_each_call(const ptx::Function& function, Visit&& visit) {
  for (ptx::InstructionId id = 0; id < function.instructions.size(); ++id) {
    if (function.instructions[id].op != Op::call) continue;
    const ptx::CallParts parts = ptx::call_parts(function, function.instructions[id]);
    if (parts.target && parts.target->kind == OperandKind::function) visit(id, parts.target->id);
  }
}

// Whether every path through `function` makes the call, so that nothing bounds the recursion.
bool is_unavoidable(const ptx::Function& function, ptx::InstructionId call) {
  if (function.instructions[call].guard) return false;
  const flow::Graph graph(function);
  const auto tree = flow::DominatorTree::post_dominators(graph);
  return graph.is_reachable(graph.block_of(call)) && tree.dominates(graph.block_of(call), 0);
}

// The call graph of everything that a kernel reaches.
class CallGraph {
 public:
  CallGraph(const ptx::Module& module, FunctionId start) : start_(start) {
    std::vector<FunctionId> work{start};
    while (!work.empty()) {
      const FunctionId at = work.back();
      work.pop_back();
      const auto [entry, is_new] = callees_.try_emplace(at);
      if (!is_new) continue;
      std::vector<FunctionId>& callees = entry->second;
      for_each_call(module.functions[at], [&](ptx::InstructionId, FunctionId callee) { callees.push_back(callee); });
      work.insert(work.end(), callees.begin(), callees.end());
    }
  }

  size_t size() const { return callees_.size(); }
  const std::vector<FunctionId>& callees(FunctionId id) const { return callees_.at(id); }

  // Functions on a cycle: members of a strongly connected component of several functions, or functions that call
  // themselves (Tarjan, SIAM J. Comput. 1972, with an explicit stack).
  std::set<FunctionId> functions_on_cycles() const {
    struct State {
      uint32_t index = 0, lowest = 0;  // counted from 1; 0: not visited
      bool is_open = false;
    };
    std::map<FunctionId, State> states;
    std::set<FunctionId> cyclic;
    std::vector<FunctionId> open;
    std::vector<std::pair<FunctionId, size_t>> way;  // with the number of callees already visited
    uint32_t clock = 0;
    const auto enter = [&](FunctionId id) {
      ++clock;
      states[id] = {clock, clock, true};
      open.push_back(id);
      way.emplace_back(id, 0);
    };
    enter(start_);
    while (!way.empty()) {
      auto& [at, done] = way.back();
      State& state = states[at];
      if (done < callees(at).size()) {
        const FunctionId callee = callees(at)[done++];
        const State& there = states[callee];
        if (callee == at) cyclic.insert(at);
        if (there.index == 0)
          enter(callee);
        else if (there.is_open)
          state.lowest = std::min(state.lowest, there.index);
        continue;
      }
      if (state.lowest == state.index) {
        const auto first = std::find(open.rbegin(), open.rend(), at).base() - 1;
        if (open.end() - first > 1) cyclic.insert(first, open.end());
        for (auto each = first; each != open.end(); ++each) states[*each].is_open = false;
        open.erase(first, open.end());
      }
      way.pop_back();
      if (!way.empty()) {
        State& caller = states[way.back().first];
        caller.lowest = std::min(caller.lowest, state.lowest);
      }
    }
    return cyclic;
  }

 private:
  FunctionId start_;
  std::map<FunctionId, std::vector<FunctionId>> callees_;
};

}  // namespace

// F064: a cycle in the calls that the kernel can make. If every path through one of its functions makes the next call,
// the stack overflows. If a branch may end it, the depth depends on the data.
RuleResult unbounded_recursion(Context& context) {
  const ptx::Module& module = context.module;
  const CallGraph graph(module, context.function_id);
  if (graph.callees(context.function_id).empty()) return not_applicable("the kernel calls no function");
  const std::set<FunctionId> cyclic = graph.functions_on_cycles();
  std::vector<Finding> findings;
  for (const FunctionId id : cyclic) {
    const ptx::Function& function = module.functions[id];
    for_each_call(function, [&](ptx::InstructionId call, FunctionId callee) {
      if (!cyclic.contains(callee)) return;
      const bool endless = is_unavoidable(function, call);
      Finding finding;
      finding.severity = Severity::medium;
      finding.tier = endless ? Tier::proved : Tier::possible;
      finding.at = function.instructions[call].at;
      finding.message = endless ? fmt::format("'{}' calls itself on every way through it", function.name)
                                : fmt::format("'{}' calls itself, and the text does not say how often", function.name);
      finding.remedy = "make it a loop with a stack of known depth, or bound the depth by a counter";
      findings.push_back(std::move(finding));
    });
  }
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) { return a.at < b.at; });
  return conclude(std::move(findings), plural(graph.size(), "function") + " reached by the kernel, without recursion");
}

// F065: the front end resolves names, but the index into a table and the address in a register are run-time values.
RuleResult indirect_target(Context& context) {
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  std::vector<Finding> findings;
  size_t count = 0;
  std::string open;
  for_each_instruction(context, [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
    if (instruction.op == Op::call) {
      const ptx::CallParts parts = ptx::call_parts(function, instruction);
      if (!parts.target || parts.target->kind != OperandKind::reg) return;
      ++count;
      const uint32_t index = static_cast<uint32_t>(parts.target - function.operand_pool.data());
      const flow::Fact fact = fact_at(context, index, 64);
      const flow::Base& base = analyses.domain().base(fact.base);
      if (base.kind == flow::Base::Kind::variable ||
          (base.kind == flow::Base::Kind::none && fact.reached && fact.bits.known() == ~0ull))
        findings.push_back(finding_at(context, id, Severity::high, Tier::proved,
                                      base.kind == flow::Base::Kind::variable
                                          ? fmt::format("expected the address of a function, found that of '{}'",
                                                        context.module.variables[base.id].name)
                                          : fmt::format("expected the address of a function, found {}", fact.bits.one),
                                      "take the address of a function with mov, or read it from a table of functions"));
      return;
    }
    if (instruction.op != Op::brx || instruction.operand_count < 2) return;
    ++count;
    const ptx::Operand& table = function.operand_pool[instruction.first_operand + 1];
    if (table.kind != OperandKind::prototype || table.id >= function.tables.size()) return;
    const uint64_t size = function.tables[table.id].targets.size();
    const flow::Fact fact = fact_at(context, instruction.first_operand);
    if (fact.high < size && fact.base == flow::kNoBase) return;
    auto report = [&](uint64_t value, Tier tier) -> Finding& {
      findings.push_back(
          finding_at(context, id, Severity::high, tier,
                     fmt::format("expected an index below {}, the size of the table, found {}", size, value),
                     "test the index before the branch, or add the missing targets"));
      return findings.back();
    };
    if (fact.low >= size) {
      report(fact.low, Tier::proved);
      return;
    }
    // A bound on this path: index < n, index <= n, !(index > n), !(index >= n), unsigned.
    const Source index = flow::source_of(analyses.ssa(), instruction.first_operand);
    if (index.kind != Source::Kind::value) return;
    const auto conditions = analyses.conditions().of_instruction(id);
    const flow::Form own = analyses.forms().of(index.id);
    for (const flow::Condition& condition : conditions) {
      const ptx::Instruction* test = definition_of(context, condition.predicate);
      if (!test || test->op != Op::setp) continue;
      const flow::Operation operation = flow::operation_of(analyses.ssa(), condition.predicate);
      const Source left = flow::source_of(analyses.ssa(), operation.first_source);
      const auto limit = constant_at(context, operation.first_source + 1);
      if (left.kind != Source::Kind::value || !limit || !(analyses.forms().of(left.id) == own)) continue;
      // Whether an index of `size` or more could pass the test.
      const auto holds = flow::compare(function, *test, size, *limit);
      const auto far = flow::compare(function, *test, 0xffffffff, *limit);
      if (holds && far && *holds != condition.expected && *far != condition.expected) return;
    }
    const auto& shape = analyses.shape();
    for (uint32_t n = 0; n < std::min(shape.is_exact ? shape.threads[0] : shape.max_threads, 1024u); ++n) {
      flow::Thread thread{{n, 0, 0}, {0, 0, 0}};
      if (shape.is_exact) std::copy_n(shape.threads, 3, thread.ntid);
      flow::Evaluator evaluator(analyses.forms(), thread,
                                flow::first_iterations(analyses.loops(), analyses.graph().block_of(id)));
      const auto value = evaluator.value(index.id);
      if (!value) break;
      bool possible = *value >= size;
      for (const flow::Condition& condition : conditions) {
        const auto holds = evaluator.value(condition.predicate);
        if (!holds || (*holds != 0) != condition.expected) possible = false;
      }
      if (!possible) continue;
      Finding& finding = report(*value, shape.is_exact ? Tier::proved : Tier::likely);
      if (!shape.is_exact)
        finding.assumptions.push_back(fmt::format("the block has more than {} in x", plural(n, "thread")));
      Witness witness;
      witness.tid[0] = n;
      witness.tid[1] = witness.tid[2] = 0;
      finding.witness = witness;
      return;
    }
    if (open.empty())
      open = fmt::format("nothing bounds the table index in line {} below {}", line_of(context, id), size);
  });
  if (count == 0) return not_applicable("the kernel has no computed branch or call");
  if (findings.empty() && !open.empty()) return undecided(open);
  return conclude(std::move(findings),
                  plural(count, "computed branch or call", "computed branches and calls") + " with valid targets");
}

namespace {

std::string describe(const ptx::Module& module, const std::vector<ptx::VariableId>& list) {
  std::string text = "(";
  for (const ptx::VariableId id : list) {
    if (text.size() > 1) text += ", ";
    const ptx::Variable& variable = module.variables[id];
    text += variable.is_array ? plural(variable.size_bytes, "byte") : std::string(ptx::text(variable.type));
  }
  return text + ")";
}

bool agree(const ptx::Module& module, const std::vector<ptx::VariableId>& a, const std::vector<ptx::VariableId>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](ptx::VariableId x, ptx::VariableId y) {
    const ptx::Variable &one = module.variables[x], &other = module.variables[y];
    return one.is_unsized || other.is_unsized || one.size_bytes == other.size_bytes;
  });
}

}  // namespace

// F066: the front end checks direct calls. For a call through a register the prototype is a promise about the function
// whose address it holds; the rule checks it where the function is known.
RuleResult call_signature(Context& context) {
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  std::vector<Finding> findings;
  size_t count = context.inlined() ? context.inlined()->calls.size() : 0, open = 0;
  for_each_instruction(context, [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
    if (instruction.op != Op::call) return;
    ++count;
    const ptx::CallParts parts = ptx::call_parts(function, instruction);
    if (!parts.target || parts.target->kind != OperandKind::reg || !parts.prototype ||
        parts.prototype->id >= function.tables.size())
      return;
    const ptx::Table& prototype = function.tables[parts.prototype->id];
    if (prototype.kind != ptx::Table::Kind::call_prototype) return;
    const flow::ValueId target = analyses.ssa().at(static_cast<uint32_t>(parts.target - function.operand_pool.data()));
    std::set<FunctionId> callees;
    if (target != flow::kNone)
      for (const flow::ValueId value : ancestors(context, target, 32)) {
        const ptx::Instruction* definition = definition_of(context, value);
        if (!definition || definition->op != Op::mov || definition->operand_count < 2) continue;
        const ptx::Operand& from = function.operand_pool[definition->first_operand + 1];
        if (from.kind == OperandKind::function) callees.insert(from.id);
      }
    if (callees.empty()) ++open;
    for (const FunctionId callee : callees) {
      const ptx::Function& called = context.module.functions[callee];
      if (agree(context.module, called.parameters, prototype.parameters) &&
          agree(context.module, called.results, prototype.results))
        continue;
      findings.push_back(
          finding_at(context, id, Severity::high, Tier::proved,
                     fmt::format("expected {} -> {}, as '{}' is declared, found the prototype {} -> {}",
                                 describe(context.module, called.parameters), describe(context.module, called.results),
                                 called.name, describe(context.module, prototype.parameters),
                                 describe(context.module, prototype.results)),
                     "write the prototype of the function that is called"));
    }
  });
  if (count == 0) return not_applicable("the kernel calls no function");
  if (findings.empty() && open) return undecided("which function an indirect call reaches is not seen in the text");
  return conclude(std::move(findings), plural(count, "call") + " as the prototypes have it");
}

}  // namespace ptxkit::rules
