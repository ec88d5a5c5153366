// Rules about values: defined before used, used after defined.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/flow/tested_range.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/engine/thread_sample.hpp"
#include "support/plural.hpp"

namespace ptxkit::rules {

using flow::Value;
using flow::ValueId;
using ptx::Op;

namespace {

constexpr unsigned kMaxResolve = 64;
constexpr unsigned kMaxFollowed = 8;

// Whether the result is undefined where an operand is. Logic on bits is not among them: a byte put into an undefined
// word is how compilers build one up.
bool propagates_value(Op op) {
  switch (op) {
    case Op::mov:
    case Op::cvt:
    case Op::cvta:
    case Op::neg:
    case Op::abs:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::mad:
    case Op::fma:
    case Op::div:
    case Op::sqrt:
    case Op::rcp:
    case Op::setp:
      return true;
    default:
      return false;
  }
}

// Undefined where the value is so on every way that leads to it, given the conditions that hold at the use: a guarded
// definition under the same predicate is a plain one.
class Undefinedness {
 public:
  Undefinedness(Context& context) : ssa_(&context.analyses().ssa()), function_(&context.function()) {
    // Greatest fixed point: a value is undefined until one of its ways defines it.
    const flow::Ssa& ssa = *ssa_;
    always_.assign(ssa.size(), true);
    std::vector<ValueId> work(ssa.order().rbegin(), ssa.order().rend());
    while (!work.empty()) {
      const ValueId id = work.back();
      work.pop_back();
      if (!always_[id] || is_undefined(id)) continue;
      always_[id] = false;
      ssa.for_each_dependent(id, [&](ValueId dependent) {
        if (always_[dependent]) work.push_back(dependent);
      });
    }
  }

  bool always(ValueId id) const { return always_[id]; }

  // The value that a use sees where `conditions` hold: old values of guarded definitions left behind.
  ValueId resolve(ValueId id, const std::vector<flow::Condition>& conditions) const {
    for (unsigned steps = 0; steps < kMaxResolve; ++steps) {
      const Value& value = ssa_->value(id);
      if (value.kind != Value::Kind::result || value.old == flow::kNone) return id;
      const ValueId predicate = ssa_->guard(value.instruction);
      const bool expected = !function_->instructions[value.instruction].guard.negated;
      bool runs = false, skips = false;
      for (const flow::Condition& condition : conditions) {
        if (condition.predicate != predicate) continue;
        (condition.expected == expected ? runs : skips) = true;
      }
      if (!skips || runs) return id;
      id = value.old;
    }
    return id;
  }

 private:
  bool is_undefined(ValueId id) const {
    const flow::Ssa& ssa = *ssa_;
    const Value& value = ssa.value(id);
    switch (value.kind) {
      case Value::Kind::undefined:
        return true;
      case Value::Kind::phi:
        for (const ValueId argument : ssa.arguments(id))
          if (argument != flow::kNone && !always_[argument]) return false;
        return true;
      case Value::Kind::result:
        break;
    }
    if (value.old != flow::kNone && !always_[value.old]) return false;
    const flow::Operation operation = flow::operation_of(ssa, id);
    if (!propagates_value(operation.instruction->op)) return false;
    const ptx::Operand& first = function_->operand_pool[operation.first_source];
    if (first.child_count) return false;
    for (unsigned i = 0; i < operation.source_count; ++i) {
      const flow::Source source = flow::source_of(ssa, operation.first_source + i);
      if (source.kind == flow::Source::Kind::value && always_[source.id]) return true;
    }
    return false;
  }

  const flow::Ssa* ssa_;
  const ptx::Function* function_;
  std::vector<bool> always_;
};

// A guarded definition that nothing precedes leaves the register undefined where its guard is false. How a use under
// `conditions` stands to the guards of such a chain of definitions.
enum class DefinitionState : uint8_t {
  defined,  // one of them surely ran, or something was there before them all
  open,     // the use is conditional in a way that cannot be compared with the guards
  missing,  // nothing keeps the use from running where none of them did
};

DefinitionState definition_state_of(const flow::Ssa& ssa, ValueId id, const std::vector<flow::Condition>& conditions) {
  const ptx::Function& function = ssa.graph().function();
  std::vector<flow::Condition> guards;
  for (unsigned steps = 0; steps < kMaxResolve; ++steps) {
    const Value& value = ssa.value(id);
    if (value.kind == Value::Kind::undefined) break;
    if (value.kind != Value::Kind::result || value.old == flow::kNone) return DefinitionState::defined;
    guards.push_back({ssa.guard(value.instruction), !function.instructions[value.instruction].guard.negated});
    id = value.old;
  }
  for (const flow::Condition& guard : guards)
    if (std::find(guards.begin(), guards.end(), flow::Condition{guard.predicate, !guard.expected}) != guards.end() ||
        std::find(conditions.begin(), conditions.end(), guard) != conditions.end())
      return DefinitionState::defined;
  return conditions.empty() ? DefinitionState::missing : DefinitionState::open;
}

// A guarded definition that nothing precedes, from which `id` is computed without a further guard, and which may not
// have run under `conditions`. kNone where there is none.
ValueId guarded_source(const flow::Ssa& ssa, ValueId id, const std::vector<flow::Condition>& conditions) {
  std::vector<ValueId> work{id};
  for (unsigned steps = 0; !work.empty() && steps < kMaxFollowed; ++steps) {
    const ValueId next = work.back();
    work.pop_back();
    const Value& value = ssa.value(next);
    if (value.kind != Value::Kind::result) continue;
    if (value.old != flow::kNone) {
      if (definition_state_of(ssa, next, conditions) == DefinitionState::missing) return next;
      continue;
    }
    const flow::Operation operation = flow::operation_of(ssa, next);
    if (!propagates_value(operation.instruction->op) || operation.parts != 1) continue;
    for (unsigned i = 0; i < operation.source_count; ++i) {
      const flow::Source source = flow::source_of(ssa, operation.first_source + i);
      if (source.kind == flow::Source::Kind::value) work.push_back(source.id);
    }
  }
  return flow::kNone;
}

struct ThreadNumber {
  unsigned dimension = 0;
  uint64_t least = 0;
};

// Which threads alone get from one block to the next: those whose %tid.x, .y or .z is at least a constant.
std::optional<ThreadNumber> threads_on_edge(Context& context, flow::BlockId from, flow::BlockId to) {
  Analyses& analyses = context.analyses();
  const flow::Graph& graph = analyses.graph();
  std::vector<flow::Condition> conditions = analyses.conditions().of(from);
  const ptx::Instruction& last = context.function().instructions[graph.last(from)];
  if (const auto sides = graph.successors(from); last.op == Op::bra && last.guard && sides.size() == 2)
    conditions.push_back({analyses.ssa().guard(graph.last(from)), (sides[0] == to) != last.guard.negated});
  std::optional<ThreadNumber> found;
  const auto note = [&](uint32_t special, uint64_t component, uint64_t least) {
    if (static_cast<ptx::SpecialRegister>(special) == ptx::SpecialRegister::tid && (!found || found->least < least))
      found = {static_cast<unsigned>(component - 'x'), least};
  };
  for (const flow::Condition& condition : conditions) {
    const auto range = flow::tested_range(analyses.domain(), condition);
    if (!range) continue;
    if (range->source.kind == flow::Source::Kind::special) note(range->source.id, range->source.component, range->low);
    if (range->source.kind != flow::Source::Kind::value) continue;
    const flow::Form form = analyses.forms().of(range->source.id);
    // No sum of a thread's number and a small number wraps.
    const bool is_sum = form.base == flow::kNoBase && form.terms.size() == 1 && form.terms[0].coefficient == 1;
    if (!is_sum || form.constant < 0 || form.constant > INT32_MAX || range->low < static_cast<uint64_t>(form.constant))
      continue;
    const flow::Atom& atom = analyses.forms().atom(form.terms[0].atom);
    if (atom.kind == flow::Atom::Kind::special)
      note(atom.id, atom.detail, range->low - static_cast<uint64_t>(form.constant));
  }
  return found;
}

// The undefined register at the bottom of an undefined value, for the message.
ValueId root_of(const flow::Ssa& ssa, const Undefinedness& undefined, ValueId id) {
  for (unsigned steps = 0; steps < kMaxResolve; ++steps) {
    const Value& value = ssa.value(id);
    ValueId next = flow::kNone;
    if (value.kind == Value::Kind::phi) {
      for (const ValueId argument : ssa.arguments(id))
        if (argument != flow::kNone && argument != id && undefined.always(argument)) next = argument;
    } else if (value.kind == Value::Kind::result) {
      const flow::Operation operation = flow::operation_of(ssa, id);
      for (unsigned i = 0; i < operation.source_count && next == flow::kNone; ++i) {
        const flow::Source source = flow::source_of(ssa, operation.first_source + i);
        if (source.kind == flow::Source::Kind::value && undefined.always(source.id)) next = source.id;
      }
    }
    if (next == flow::kNone) return id;
    id = next;
  }
  return id;
}

}  // namespace

// F071. Reports where an undefined value matters: an address, a guard of a branch, the data of a store. A copy or a sum
// of it is no use, because compilers leave such copies behind where the result is never looked at. A phi that is
// undefined on one way only is refuted when its use runs on every way on from the join, so that no later test can keep
// it away; and not where it is stored to shared or local memory, which block-wide algorithms do with the padding of a
// partial tile. A path for threads that no block is known to have is an open question.
RuleResult use_before_definition(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Ssa& ssa = analyses.ssa();
  const ptx::Function& function = context.function();
  if (ssa.size() == 0) return not_applicable("the kernel uses no registers");
  bool any = false;
  for (const Value& value : ssa.values()) any = any || value.kind == Value::Kind::undefined;
  if (!any) return survived("every register is defined on every path to each of its uses");

  const Undefinedness undefined(context);
  std::vector<Finding> findings;
  auto look = [&](ValueId used, ptx::InstructionId id, std::string_view as, bool own_guard, bool partly = true) {
    if (used == flow::kNone) return;
    std::vector<flow::Condition> conditions;
    if (ssa.value(used).kind == Value::Kind::result)
      conditions = own_guard ? analyses.conditions().of_instruction(id)
                             : analyses.conditions().of(analyses.graph().block_of(id));
    const ValueId value = undefined.resolve(used, conditions);
    const std::string name = function.registers[ssa.value(used).reg].name();
    if (undefined.always(value)) {
      const ValueId root = root_of(ssa, undefined, value);
      const std::string origin = function.registers[ssa.value(root).reg].name();
      Finding finding = finding_at(context, id, Severity::high, Tier::proved,
                                   fmt::format("{} is used as {} but {} never defined before", name, as,
                                               origin == name ? "is" : origin + ", which it comes from, is"),
                                   "define the register on every path that leads here");
      findings.push_back(std::move(finding));
      return;
    }
    const Value& joined = ssa.value(value);
    if (!partly) return;
    if (const ValueId guarded = guarded_source(ssa, value, conditions); guarded != flow::kNone) {
      const std::string origin = function.registers[ssa.value(guarded).reg].name();
      Finding finding = finding_at(context, id, Severity::high, Tier::likely,
                                   fmt::format("{} is used as {} but {} defined under a guard only", name, as,
                                               origin == name ? "is" : origin + ", which it comes from, is"),
                                   "define the register on every path that leads here, or guard this use too");
      finding.path.push_back(
          {function.instructions[ssa.value(guarded).instruction].at, "it is defined here where the guard holds"});
      finding.assumptions.push_back("the guard does not hold");
      findings.push_back(std::move(finding));
      return;
    }
    if (joined.kind != Value::Kind::phi) return;
    const auto predecessors = ssa.graph().predecessors(joined.block);
    const flow::BlockId use_block = analyses.graph().block_of(id);
    std::optional<Finding> open;
    for (uint32_t edge = 0; edge < predecessors.size(); ++edge) {
      const ValueId argument = ssa.arguments(value)[edge];
      if (argument == flow::kNone || ssa.value(argument).kind != Value::Kind::undefined) continue;
      const bool guarded_use = own_guard && function.instructions[id].guard;
      if (guarded_use || !analyses.post_dominators().dominates(use_block, joined.block)) continue;
      // Inside a loop the way in and the use may be kept apart by the iteration.
      if (analyses.loops().innermost(joined.block) != flow::kNone &&
          analyses.loops().loop(analyses.loops().innermost(joined.block)).header == joined.block &&
          !analyses.loops().contains(analyses.loops().innermost(joined.block), use_block))
        continue;
      const auto threads = threads_on_edge(context, predecessors[edge], joined.block);
      const flow::LaunchShape& shape = analyses.shape();
      if (threads && threads->least > shape.max_tid(threads->dimension)) continue;
      const bool needs_launch = threads && !shape.is_exact && threads->least >= kThreadsOfSeveralWarps;
      Finding finding = finding_at(context, id, needs_launch ? Severity::medium : Severity::high,
                                   needs_launch ? Tier::possible : Tier::likely,
                                   fmt::format("{} is used as {} but is not defined on one path", name, as),
                                   "define the register on every path that leads here");
      finding.path.push_back({function.instructions[analyses.graph().last(predecessors[edge])].at,
                              fmt::format("on the path through here {} has no value", name)});
      finding.path.push_back(
          {function.instructions[analyses.graph().block(joined.block).first].at, "the paths join here"});
      if (needs_launch) {
        finding.assumptions.push_back(
            fmt::format("the block has at least {} threads in {}", threads->least + 1, "xyz"[threads->dimension]));
        open = std::move(finding);
        continue;
      }
      finding.assumptions.push_back("that path is taken");
      findings.push_back(std::move(finding));
      return;
    }
    if (open) findings.push_back(std::move(*open));
  };

  for (const flow::BlockId block : analyses.graph().reverse_postorder())
    for (ptx::InstructionId id = analyses.graph().block(block).first; id < analyses.graph().block(block).end; ++id) {
      const ptx::Instruction& instruction = function.instructions[id];
      if (ssa.guard(id) != flow::kNone &&
          (ptx::is_branch(instruction) || ptx::ends_thread(instruction) || ptx::accesses_of(function, id).count))
        look(ssa.guard(id), id, "a guard", false);
      const ptx::Accesses accesses = ptx::accesses_of(function, id);
      for (unsigned i = 0; i < accesses.count; ++i) {
        const ptx::Access& access = accesses.items[i];
        if (function.operand_pool[access.address].base == ptx::AddressBase::reg)
          look(ssa.at(access.address), id, "an address", true);
        // Elements of a vector may be padding.
        // Nor is a store to the stack a use: unoptimised code keeps every variable there, set or not.
        const flow::Source base = flow::address_base(ssa, access.address);
        const bool to_stack = access.space == ptx::Space::local ||
                              (base.kind == flow::Source::Kind::value &&
                               flow::only_space(analyses.domain().fact(base.id).points_to) == ptx::Space::local);
        if (access.kind != ptx::AccessKind::load && access.data != ptx::kNone && !to_stack &&
            function.operand_pool[access.data].kind == ptx::OperandKind::reg)
          look(ssa.at(access.data), id, "the data of a store", true, access.space != ptx::Space::shared);
      }
    }
  in_program_order(findings);
  merge_by_source(context, findings);
  return conclude(std::move(findings), "no undefined value reaches an address, a guard or the data of a store");
}

// F075. F071 for every use, not only those that show. A copy, and a selp that asks the guard itself, are no use.
RuleResult predicated_definition(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Ssa& ssa = analyses.ssa();
  const ptx::Function& function = context.function();
  std::vector<Finding> findings;
  size_t guarded = 0, open = 0;
  for (ValueId id = 0; id < ssa.size(); ++id) {
    const Value& value = ssa.value(id);
    if (value.kind != Value::Kind::result || value.old == flow::kNone ||
        definition_state_of(ssa, id, {}) != DefinitionState::missing)
      continue;
    ++guarded;
    for (const flow::Use& use : ssa.uses(id)) {
      if (use.kind == flow::Use::Kind::phi) ++open;
      if (use.kind != flow::Use::Kind::operand && use.kind != flow::Use::Kind::guard) continue;
      const Op op = function.instructions[use.id].op;
      if (op == Op::mov || op == Op::selp || op == Op::cvt) continue;
      // Conditions that held where the value was defined say nothing about its guard.
      auto conditions = analyses.conditions().of_instruction(use.id);
      const auto before = analyses.conditions().of(value.block);
      std::erase_if(conditions, [&](const flow::Condition& condition) {
        return std::find(before.begin(), before.end(), condition) != before.end();
      });
      const DefinitionState cover = definition_state_of(ssa, id, conditions);
      if (cover == DefinitionState::open) ++open;
      if (cover != DefinitionState::missing) continue;
      Finding finding = finding_at(
          context, use.id, Severity::medium, Tier::likely,
          fmt::format("{} is defined under a guard that this use does not have", function.registers[value.reg].name()),
          "guard the use too, or define the register before");
      finding.path.push_back({function.instructions[value.instruction].at, "it is defined here where the guard holds"});
      finding.assumptions.push_back("the guard does not hold");
      findings.push_back(std::move(finding));
      break;
    }
  }
  if (guarded == 0) return not_applicable("no register is defined under a guard only");
  in_program_order(findings);
  if (findings.empty() && open) return undecided("a guarded definition is used under conditions that are not compared");
  return conclude(std::move(findings), plural(guarded, "guarded definition") + " with no use outside of the guard");
}

}  // namespace ptxkit::rules
