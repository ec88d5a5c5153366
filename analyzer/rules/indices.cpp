// Rules about index arithmetic and how it is guarded: F070, F076, F078, F079, F080, F090.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/bits.hpp"
#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/evaluate.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/launch.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/access_prover.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/engine/walk.hpp"
#include "support/plural.hpp"

namespace ptxkit::rules {

using flow::Source;
using flow::ValueId;
using ptx::Access;
using ptx::AccessKind;
using ptx::Op;
using ptx::Space;

namespace {

constexpr unsigned kAncestorsOfIndex = 64;

// The last thread that a launch can have, as far as it is known: of the grid where the launch file says it.
flow::Thread last_thread(const flow::LaunchShape& shape) {
  flow::Thread thread;
  for (unsigned d = 0; d < 3; ++d) {
    thread.tid[d] = shape.is_exact ? shape.threads[d] - 1 : d == 0 ? shape.max_threads - 1 : 0;
    thread.ntid[d] = shape.is_exact ? shape.threads[d] : 0;
    if (shape.grid[d]) thread.ctaid[d] = shape.grid[d] - 1;
    thread.nctaid[d] = shape.grid[d];
  }
  return thread;
}

// A value from memory that the index of an address is computed from; kNone where there is none. The object's own
// pointer may be loaded.
ValueId loaded_index(Context& context, ValueId address, const flow::Base& base) {
  const flow::Ssa& ssa = context.analyses().ssa();
  std::vector<ValueId> work{address};
  std::set<ValueId> seen{address};
  while (!work.empty() && seen.size() < kAncestorsOfIndex) {
    const ValueId id = work.back();
    work.pop_back();
    const flow::Value& value = ssa.value(id);
    const auto push = [&](ValueId next) {
      if (next != flow::kNone && seen.insert(next).second) work.push_back(next);
    };
    if (base.kind == flow::Base::Kind::loaded && base.id == id) continue;
    if (value.kind == flow::Value::Kind::phi) std::ranges::for_each(ssa.arguments(id), push);
    if (value.kind != flow::Value::Kind::result) continue;
    const ptx::Accesses accesses = ptx::accesses_of(context.function(), value.instruction);
    if (accesses.count != 0) {
      const Space space = accesses.items[0].space;
      if (space == Space::global || space == Space::shared || space == Space::generic) return id;
      continue;
    }
    push(value.old);
    ptx::for_each_register(context.function(), context.function().instructions[value.instruction],
                           [&](uint32_t index, const ptx::Operand&, bool written) {
                             if (!written) push(ssa.at(index));
                           });
  }
  return flow::kNone;
}

// Whether the instruction itself says how many bytes it reads, which may be none: a masked cp.async.
bool may_read_nothing(const ptx::Function& function, const Access& access) {
  const ptx::Instruction& instruction = function.instructions[access.instruction];
  return access.kind == AccessKind::load && (ptx::operand_of(function, instruction, ptx::Purpose::source_size) ||
                                             ptx::operand_of(function, instruction, ptx::Purpose::ignore));
}

// What the solver found.
Finding past_the_end(Context& context, const Access& access, flow::BaseId base, uint64_t size,
                     const AccessProver::Answer& answer) {
  const flow::Thread& thread = answer.thread;
  const std::string object = context.analyses().domain().describe(base);
  Finding finding =
      finding_at(context, access.instruction, Severity::medium, Tier::proved,
                 fmt::format("thread ({}, {}, {}) of block ({}, {}, {}) accesses {} at offset {} of {}, which has {}",
                             thread.tid[0], thread.tid[1], thread.tid[2], thread.ctaid[0], thread.ctaid[1],
                             thread.ctaid[2], plural(access.extent_bytes, "byte"), static_cast<int64_t>(answer.offset),
                             object, plural(size, "byte")),
                 "skip the access where the index is past the end");
  Witness witness;
  for (unsigned d = 0; d < 3; ++d) witness.tid[d] = thread.tid[d];
  witness.address = answer.offset;
  witness.note = "offset from " + object;
  finding.witness = std::move(witness);
  return finding;
}

}  // namespace

// F070. Threads are launched in whole blocks: without a test, or a launch that says how many there are, the last block
// may run past the end. Refuted where the size of the object is known and a thread is past it.
RuleResult unguarded_global_index(Context& context) {
  Analyses& analyses = context.analyses();
  flow::Forms& forms = analyses.forms();
  const flow::LaunchShape& shape = analyses.shape();
  std::vector<Finding> findings;
  size_t indexed = 0, guarded = 0, bounded = 0;
  ptx::InstructionId open = ptx::kNone;
  bool is_loaded = false;  // the index at `open`
  AccessProver prover(context);
  size_t by_solver = 0;
  for (const Access& access : analyses.accesses()) {
    if (access.space != Space::global && access.space != Space::generic) continue;
    const Source address = flow::address_base(analyses.ssa(), access.address);
    if (address.kind != Source::Kind::value || !depends_on_thread(context, address.id, true)) continue;
    const flow::Form form = forms.expand(forms.address(access));
    const flow::Base& base = analyses.domain().base(form.base);
    const bool is_global_variable = base.kind == flow::Base::Kind::variable &&
                                    context.module.variables[base.id].space == Space::global &&
                                    !context.module.variables[base.id].is_unsized;
    if (base.kind == flow::Base::Kind::variable && !is_global_variable) continue;
    ++indexed;
    if (may_read_nothing(context.function(), access)) {
      ++guarded;
      continue;
    }
    uint64_t size = is_global_variable ? context.module.variables[base.id].size_bytes : 0;
    if (base.kind == flow::Base::Kind::parameter && base.offset_bytes == 0)
      size = shape.size_bytes(context.module.variables[base.id].name);
    const auto conditions = analyses.conditions().of_instruction(access.instruction);
    const bool has_guard = std::any_of(conditions.begin(), conditions.end(), [&](const flow::Condition& condition) {
      return depends_on_thread(context, condition.predicate, true);
    });
    if (size && shape.is_exact) {
      const flow::Interval range = forms.interval(form);
      if (range.low >= 0 && static_cast<uint64_t>(range.high) + access.extent_bytes <= size) {
        ++bounded;
        continue;
      }
      flow::Evaluator evaluator(
          forms, last_thread(shape),
          flow::first_iterations(analyses.loops(), analyses.graph().block_of(access.instruction)));
      const auto offset = evaluator.form(form);
      bool gets_here = true;
      for (const flow::Condition& condition : conditions) {
        const auto holds = evaluator.value(condition.predicate);
        if (!holds || (*holds != 0) != condition.expected) gets_here = false;
      }
      if (offset && gets_here && (*offset < 0 || static_cast<uint64_t>(*offset) + access.extent_bytes > size)) {
        const flow::Thread thread = last_thread(shape);
        Finding finding = finding_at(context, access.instruction, Severity::medium, Tier::proved,
                                     fmt::format("the last thread accesses {} at offset {} of {}, which has {}",
                                                 plural(access.extent_bytes, "byte"), *offset,
                                                 analyses.domain().describe(form.base), plural(size, "byte")),
                                     "skip the access where the index is past the end");
        Witness witness;
        for (unsigned d = 0; d < 3; ++d) witness.tid[d] = thread.tid[d];
        witness.address = static_cast<uint64_t>(*offset);
        witness.note = "offset from " + analyses.domain().describe(form.base);
        finding.witness = witness;
        findings.push_back(std::move(finding));
        continue;
      }
      const AccessProver::Answer answer = prover.outside(access, form.base, size);
      if (answer.kind == AccessProver::Answer::Kind::never) {
        ++bounded;
        ++by_solver;
        continue;
      }
      if (answer.kind == AccessProver::Answer::Kind::in_thread) {
        findings.push_back(past_the_end(context, access, form.base, size, answer));
        continue;
      }
    }
    const ValueId loaded = loaded_index(context, address.id, base);
    const bool is_open = loaded != flow::kNone &&
                         std::none_of(conditions.begin(), conditions.end(), [&](const flow::Condition& condition) {
                           return any_ancestor(context, condition.predicate, [&](ValueId id) { return id == loaded; });
                         });
    if (has_guard && !is_open) {
      ++guarded;
    } else if (open == ptx::kNone) {
      open = access.instruction;
      is_loaded = is_open;
    }
  }
  if (indexed == 0) return not_applicable("no global access is indexed by the thread");
  if (findings.empty() && open != ptx::kNone)
    return undecided(is_loaded ? fmt::format("line {} is indexed by a value from memory, which no test bounds",
                                             line_of(context, open))
                               : fmt::format("no test bounds the thread's index at line {}; a launch file says how "
                                             "many threads there are and how large the buffers",
                                             line_of(context, open)));
  return conclude(std::move(findings),
                  fmt::format("{} indexed by the thread: {} guarded by a test, {} bounded by the launch{}",
                              plural(indexed, "access", "accesses"), guarded, bounded,
                              by_solver ? fmt::format(", {} of them by Z3", by_solver) : ""));
}

// F076. Only stores may cut a register without a cvt. Where one value is stored whole in one place and cut in another,
// and its upper part may hold something, one of the two is not what was meant.
RuleResult mixed_width_use(Context& context) {
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  const flow::Ssa& ssa = analyses.ssa();
  std::map<ValueId, std::pair<ptx::InstructionId, uint32_t>> narrow;  // by value: the store that cuts, its width
  std::map<ValueId, ptx::InstructionId> whole;
  bool any = false;
  for (const Access& access : analyses.accesses()) {
    if (access.kind != AccessKind::store || access.data == ptx::kNone) continue;
    const ptx::Instruction& instruction = function.instructions[access.instruction];
    if (instruction.vector > 1 || instruction.op != Op::st) continue;
    const Source data = flow::source_of(ssa, access.data);
    if (data.kind != Source::Kind::value) continue;
    any = true;
    const unsigned width = flow::width_of(ssa, data.id);
    if (8 * access.width_bytes < width)
      narrow.try_emplace(data.id, access.instruction, access.width_bytes);
    else
      whole.try_emplace(data.id, access.instruction);
  }
  if (!any) return not_applicable("the kernel stores no register");
  std::vector<Finding> findings;
  for (const auto& [value, cut] : narrow) {
    const auto other = whole.find(value);
    if (other == whole.end()) continue;
    const flow::Fact& fact = analyses.domain().fact(value);
    if (fact.base == flow::kNoBase && fact.high <= flow::low_mask(8 * cut.second)) continue;
    Finding finding =
        finding_at(context, cut.first, Severity::medium, Tier::proved,
                   fmt::format("this stores {} of the {} of a value, line {} all of it", cut.second,
                               plural(flow::width_of(ssa, value) / 8, "byte"), line_of(context, other->second)),
                   "convert with cvt, so that the text says which part is meant");
    finding.path.push_back({function.instructions[other->second].at, "the whole value is stored here"});
    findings.push_back(std::move(finding));
  }
  in_program_order(findings);
  return advise(std::move(findings), "no value is stored whole and cut", "values are stored at two widths");
}

// F078. A signed test from above lets a negative index pass; read as unsigned it is far past the end.
RuleResult mixed_sign_bounds_check(Context& context) {
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  const flow::Ssa& ssa = analyses.ssa();
  std::vector<Finding> findings;
  std::set<std::pair<ValueId, ptx::InstructionId>> reported;
  bool any = false;
  for (const Access& access : analyses.accesses()) {
    const Source address = flow::address_base(ssa, access.address);
    if (address.kind != Source::Kind::value) continue;
    // Where a 32-bit value becomes part of the address as an unsigned number.
    std::vector<std::pair<ValueId, ptx::InstructionId>> widened;
    for (const ValueId id : ancestors(context, address.id, 12)) {
      const ptx::Instruction* definition = definition_of(context, id);
      if (!definition || flow::width_of(ssa, id) != 64) continue;
      const bool by_cvt =
          definition->op == Op::cvt && definition->type_count == 2 && definition->types[1] == ptx::Type::u32;
      const bool by_product = (definition->op == Op::mul || definition->op == Op::mad) &&
                              definition->type() == ptx::Type::u32 &&
                              ptx::facts_of(context.function(), *definition).product == ptx::Product::wide;
      if (!by_cvt && !by_product) continue;
      const Source from = flow::source_of(ssa, flow::operation_of(ssa, id).first_source);
      if (from.kind == Source::Kind::value) widened.emplace_back(from.id, ssa.value(id).instruction);
    }
    if (widened.empty()) continue;
    const auto conditions = analyses.conditions().of_instruction(access.instruction);
    for (const auto& [index, where] : widened) {
      const flow::Fact& fact = analyses.domain().fact(index);
      if (fact.high < 0x80000000u || fact.base != flow::kNoBase) continue;
      const flow::Form form = analyses.forms().of(index);
      ptx::InstructionId above = ptx::kNone;
      bool below = false;
      for (const flow::Condition& condition : conditions) {
        const ptx::Instruction* test = definition_of(context, condition.predicate);
        if (!test || test->op != Op::setp || ptx::bit_width(test->type()) != 32) continue;
        const flow::Operation operation = flow::operation_of(ssa, condition.predicate);
        if (operation.source_count != 2) continue;
        for (unsigned side = 0; side < 2; ++side) {
          const Source tested = flow::source_of(ssa, operation.first_source + side);
          if (tested.kind != Source::Kind::value || !(analyses.forms().of(tested.id) == form)) continue;
          any = true;
          // What the test says of -1 against 1, and of 2 against 1.
          auto passes = [&](uint64_t value, uint64_t limit) {
            const auto holds =
                side == 0 ? flow::compare(function, *test, value, limit) : flow::compare(function, *test, limit, value);
            return holds && *holds == condition.expected;
          };
          const bool negative = passes(0xffffffff, 1), large = passes(2, 1);
          if (!large && negative) above = ssa.value(condition.predicate).instruction;
          if (!negative) below = true;
        }
      }
      if (above == ptx::kNone || below || !reported.insert({index, above}).second) continue;
      Finding finding = finding_at(context, above, Severity::medium, Tier::likely,
                                   "the index is bounded from above as a signed number and used as an unsigned one",
                                   "compare unsigned, or test for negative numbers too");
      finding.path.push_back({function.instructions[where].at, "it is widened without its sign here"});
      finding.path.push_back({function.instructions[access.instruction].at, "and used in this address"});
      finding.assumptions.push_back("the index is negative");
      findings.push_back(std::move(finding));
    }
  }
  if (!any) return not_applicable("no 32-bit index is tested and widened into an address");
  in_program_order(findings);
  return conclude(std::move(findings), "every index is tested as the number that it is used as");
}

// F079. Products, sums and shifts of 32 bits on the way into an address, in the last thread of the launch.
RuleResult index_overflow(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Ssa& ssa = analyses.ssa();
  const flow::LaunchShape& shape = analyses.shape();
  std::vector<Finding> findings;
  std::set<ValueId> seen;
  size_t counted = 0;
  ptx::InstructionId open = ptx::kNone;
  for (const Access& access : analyses.accesses()) {
    const Source address = flow::address_base(ssa, access.address);
    if (address.kind != Source::Kind::value || access.space == Space::shared || access.space == Space::local) continue;
    for (const ValueId id : ancestors(context, address.id, kAncestorsOfIndex)) {
      const ptx::Instruction* definition = definition_of(context, id);
      if (!definition || flow::width_of(ssa, id) != 32 || ptx::bit_width(definition->type()) != 32) continue;
      const ptx::TypeKind kind = ptx::kind(definition->type());
      const ptx::Facts facts = ptx::facts_of(context.function(), *definition);
      if (kind == ptx::TypeKind::floating || kind == ptx::TypeKind::packed || facts.saturates ||
          facts.product == ptx::Product::high)
        continue;
      const Op op = definition->op;
      if (op != Op::mul && op != Op::mad && op != Op::shl && op != Op::add) continue;
      if (!seen.insert(id).second) continue;
      const flow::Operation operation = flow::operation_of(ssa, id);
      flow::Fact inputs[3];
      for (unsigned i = 0; i < std::min(operation.source_count, 3u); ++i)
        inputs[i] = fact_at(context, operation.first_source + i);
      // A sum with a negative constant is a difference.
      if (op == Op::add && (inputs[0].low > 0x7fffffff || inputs[1].low > 0x7fffffff)) continue;
      ++counted;
      auto whole = [&](uint64_t a, uint64_t b, uint64_t c) -> __uint128_t {
        if (op == Op::add) return __uint128_t{a} + b;
        if (op == Op::shl) return b > 63 ? 0 : __uint128_t{a} << b;
        return __uint128_t{a} * b + (op == Op::mad ? c : 0);
      };
      if (whole(inputs[0].high, inputs[1].high, inputs[2].high) <= 0xffffffffu) continue;
      flow::Evaluator evaluator(analyses.forms(), last_thread(shape),
                                flow::first_iterations(analyses.loops(), ssa.value(id).block));
      uint64_t values[3] = {0, 0, 0};
      bool known = shape.is_exact;
      for (unsigned i = 0; i < std::min(operation.source_count, 3u) && known; ++i) {
        const Source source = flow::source_of(ssa, operation.first_source + i);
        if (source.kind == Source::Kind::constant) {
          values[i] = source.constant & 0xffffffff;
        } else {
          const auto value = evaluator.operand(source, 32);
          known = value.has_value();
          if (value) values[i] = *value & 0xffffffff;
        }
      }
      const bool negative = values[0] > 0x7fffffff || values[1] > 0x7fffffff || values[2] > 0x7fffffff;
      const __uint128_t exact = whole(values[0], values[1], values[2]);
      if (!known) {
        if (open == ptx::kNone) open = ssa.value(id).instruction;
        continue;
      }
      if (exact <= 0xffffffffu || negative) continue;
      Finding finding = finding_at(
          context, ssa.value(id).instruction, Severity::medium, Tier::proved,
          fmt::format("in the last thread this is {}, of which 32 bits are kept", static_cast<uint64_t>(exact)),
          "compute the index in 64 bits: mul.wide, or cvt before the arithmetic");
      finding.path.push_back({context.function().instructions[access.instruction].at, "the address that it goes into"});
      Witness witness;
      for (unsigned d = 0; d < 3; ++d) witness.tid[d] = last_thread(shape).tid[d];
      finding.witness = witness;
      findings.push_back(std::move(finding));
    }
  }
  if (counted == 0) return not_applicable("no 32-bit arithmetic goes into a global address");
  in_program_order(findings);
  if (findings.empty() && open != ptx::kNone)
    return undecided(
        fmt::format("whether line {} overflows depends on the launch; a launch file says it", line_of(context, open)));
  return conclude(std::move(findings), plural(counted, "operation") + " on indices within 32 bits in every thread");
}

// F080. PTX defines what a larger amount does (the value is shifted out), C does not: where one can be seen it is
// rarely meant.
RuleResult shift_amount(Context& context) {
  std::vector<Finding> findings;
  size_t count = 0, open = 0;
  for_each_instruction(context, [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
    if (instruction.op != Op::shl && instruction.op != Op::shr) return;
    ++count;
    const unsigned width = ptx::bit_width(instruction.type());
    const flow::Fact amount = fact_at(context, instruction.first_operand + 2);
    if (amount.reached && amount.low >= width)
      findings.push_back(finding_at(context, id, Severity::low, Tier::proved,
                                    fmt::format("expected a shift by less than {}, found {}", width, amount.low),
                                    "mask the amount, or write the constant that is meant"));
    else if (amount.high >= width)
      ++open;
  });
  if (count == 0) return not_applicable("the kernel shifts nothing");
  if (findings.empty() && open)
    return undecided(
        fmt::format("of {}, computed at run time and not bounded: {}", plural(count, "shift amount"), open));
  return conclude(std::move(findings), plural(count, "shift amount") + " below the width");
}

// F090. A loop whose exits do not ask the counter that moves its store goes on until something else ends it.
RuleResult store_address_from_counter(Context& context) {
  Analyses& analyses = context.analyses();
  flow::Forms& forms = analyses.forms();
  const flow::Ssa& ssa = analyses.ssa();
  const flow::Graph& graph = analyses.graph();
  std::vector<Finding> findings;
  bool any = false;
  for (const Access& access : analyses.accesses()) {
    if (access.kind == AccessKind::load || access.space == Space::local) continue;
    const flow::BlockId block = graph.block_of(access.instruction);
    const flow::Form form = forms.expand(forms.address(access));
    for (const flow::Term& term : form.terms) {
      const flow::Atom& atom = forms.atom(term.atom);
      if (atom.kind != flow::Atom::Kind::iteration || !analyses.loops().contains(atom.id, block)) continue;
      any = true;
      bool bounded = false;
      for (const flow::BlockId exit : graph.reverse_postorder()) {
        if (!analyses.loops().contains(atom.id, exit)) continue;
        bool leaves = graph.block(exit).exits;
        for (const flow::BlockId next : graph.successors(exit))
          leaves = leaves || !analyses.loops().contains(atom.id, next);
        const ValueId guard = ssa.guard(graph.last(exit));
        if (!leaves || guard == flow::kNone) continue;
        bounded = bounded || any_ancestor(context, guard, [&](ValueId id) { return forms.induction(id) != nullptr; });
      }
      // A test on the way to the store bounds it as well.
      for (const flow::Condition& condition : analyses.conditions().of_instruction(access.instruction))
        bounded = bounded || any_ancestor(context, condition.predicate,
                                          [&](ValueId id) { return forms.induction(id) != nullptr; });
      if (bounded) continue;
      findings.push_back(
          finding_at(context, access.instruction, Severity::low, Tier::likely,
                     fmt::format("the address moves by {} in every iteration, and no test asks how far it has come",
                                 plural(static_cast<size_t>(std::abs(term.coefficient)), "byte")),
                     "bound the counter by the size of the buffer"));
      findings.back().assumptions.push_back("what ends the loop comes too late");
      break;
    }
  }
  if (!any) return not_applicable("no loop counter moves the address of a store");
  return conclude(std::move(findings), "every counter that moves a store is tested");
}

}  // namespace ptxkit::rules
