// Rules about state spaces: which instruction reaches which memory, and how wide the address is.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/engine/walk.hpp"

namespace ptxkit::rules {

using flow::Source;
using ptx::Access;
using ptx::Space;

namespace {

constexpr size_t kAncestorsOfAddress = 32;

}  // namespace

// F022. Shared memory is a 32-bit window: an address register of 64 bits costs a register and hides truncation. Where a
// kernel forms every shared address in 64 bits, that is its compiler's data model (clang's, unless it is told
// -nvptx-short-ptr), and advice; where others are formed in 32 bits, it is a mistake of the one that is not.
RuleResult shared_addressing_64(Context& context) {
  Analyses& analyses = context.analyses();
  std::vector<Finding> findings;
  bool any = false, any_narrow = false;
  for (const Access& access : analyses.accesses()) {
    if (access.space != Space::shared && access.space != Space::shared_cluster) continue;
    any = true;
    const Source base = flow::address_base(analyses.ssa(), access.address);
    if (base.kind != Source::Kind::value) continue;
    if (flow::width_of(analyses.ssa(), base.id) <= 32) {
      any_narrow = true;
      continue;
    }
    const auto& reg = context.function().registers[analyses.ssa().value(base.id).reg];
    findings.push_back(
        finding_at(context, access.instruction, Severity::medium, Tier::proved,
                   fmt::format("expected a 32-bit shared address, found the 64-bit register {}", reg.name()),
                   "compute the address with mov.u32 and 32-bit arithmetic"));
  }
  if (!any) return not_applicable("the kernel does not access shared memory");
  std::string basis = "every shared access uses a 32-bit register or a symbol";
  if (any_narrow) return conclude(std::move(findings), std::move(basis));
  for (Finding& finding : findings) finding.severity = Severity::info;
  return advise(std::move(findings), std::move(basis), "the kernel forms every shared address in 64 bits");
}

// F023. Where every path to a generic access brings an address of one space, that space's instruction is faster and
// says what is meant. Advice: unoptimised code is full of it, and ptxas finds the space itself where it can.
RuleResult missing_direct_space(Context& context) {
  Analyses& analyses = context.analyses();
  std::vector<Finding> findings;
  bool any = false;
  for (const Access& access : analyses.accesses()) {
    if (access.space != Space::generic) continue;
    any = true;
    const Source base = flow::address_base(analyses.ssa(), access.address);
    if (base.kind != Source::Kind::value) continue;
    const flow::Fact& fact = analyses.domain().fact(base.id);
    const auto space = flow::only_space(fact.points_to);
    if (!space || *space == Space::param) continue;
    Finding finding =
        finding_at(context, access.instruction, Severity::info, Tier::proved,
                   fmt::format("expected .{}, found a generic access to an address that is in {} memory on every path",
                               ptx::text(*space), ptx::text(*space)),
                   fmt::format("take the address without cvta.{} and use .{}", ptx::text(*space), ptx::text(*space)));
    if (fact.base != flow::kNoBase)
      finding.path.push_back({finding.at, "the address is into " + analyses.domain().describe(fact.base)});
    findings.push_back(std::move(finding));
  }
  if (!any) return not_applicable("the kernel has no generic access");
  return advise(std::move(findings), "no generic access has an address that is provably of one space",
                "generic accesses have addresses that are provably of one space");
}

namespace {

// The value whose lower half a `mov.b64 {lo, hi}, p` gives as `id`; kNone for anything else.
flow::ValueId value_of_low_half(const flow::Ssa& ssa, flow::ValueId id) {
  const flow::Operation operation = flow::operation_of(ssa, id);
  if (operation.instruction->op != ptx::Op::mov || operation.parts != 2 || operation.part != 0) return flow::kNone;
  const Source whole = flow::source_of(ssa, operation.first_source);
  return whole.kind == Source::Kind::value && flow::width_of(ssa, whole.id) == 64 ? whole.id : flow::kNone;
}

// Whether a `mov.b64 p, {lo, hi}` puts the lower half `low` beside the upper half of the same value, or one that is not
// known to be another: a number is.
bool is_rejoined(const flow::Ssa& ssa, const ptx::Instruction& join, flow::ValueId low) {
  const ptx::Function& function = ssa.graph().function();
  const ptx::Operand& halves = function.operand_pool[join.first_operand + 1];
  if (halves.kind != ptx::OperandKind::vector || halves.child_count != 2) return false;
  const Source high = flow::source_of(ssa, halves.first_child + 1);
  return high.kind == Source::Kind::value && ssa.at(halves.first_child) == low;
}

}  // namespace

// F024. A global or generic address that went through 32 bits on its way has lost its upper half.
RuleResult truncated_pointer(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Ssa& ssa = analyses.ssa();
  const ptx::Function& function = context.function();
  if (context.module.address_size != 64) return not_applicable("addresses have 32 bits");
  std::set<uint32_t> addresses;  // operands, in the operand pool
  for (const Access& access : analyses.accesses())
    if (access.space == Space::global || access.space == Space::generic) addresses.insert(access.address);
  if (addresses.empty()) return not_applicable("the kernel has no global or generic access");

  // Forward from every cut, through what keeps an address an address.
  std::vector<flow::ValueId> cut_by(ssa.size(), flow::kNone), work;
  for (const flow::ValueId id : ssa.order()) {
    if (ssa.value(id).kind != flow::Value::Kind::result || flow::width_of(ssa, id) != 32) continue;
    const flow::Operation operation = flow::operation_of(ssa, id);
    flow::ValueId whole = value_of_low_half(ssa, id);
    if (operation.instruction->op == ptx::Op::cvt) {
      const Source from = flow::source_of(ssa, operation.first_source);
      if (from.kind == Source::Kind::value && flow::width_of(ssa, from.id) == 64) whole = from.id;
    }
    if (whole == flow::kNone) continue;
    const flow::Fact& fact = analyses.domain().fact(whole);
    const bool may_be_global = fact.points_to & (flow::kGlobalSet | flow::kConstantSet | flow::kUnknownSpace);
    if (fact.base == flow::kNoBase || !may_be_global) continue;
    cut_by[id] = id;
    work.push_back(id);
  }
  std::vector<Finding> findings;
  std::set<ptx::InstructionId> reported;
  while (!work.empty()) {
    const flow::ValueId id = work.back();
    work.pop_back();
    for (const flow::Use& use : ssa.uses(id)) {
      auto pass = [&](flow::ValueId next) {
        if (next == flow::kNone || cut_by[next] != flow::kNone) return;
        cut_by[next] = cut_by[id];
        work.push_back(next);
      };
      if (use.kind == flow::Use::Kind::phi || use.kind == flow::Use::Kind::old) pass(use.id);
      if (use.kind != flow::Use::Kind::operand) continue;
      const ptx::Instruction& user = function.instructions[use.id];
      if (addresses.contains(use.operand) && reported.insert(use.id).second) {
        Finding finding = finding_at(context, use.id, Severity::high, Tier::proved,
                                     "expected a 64-bit address, found one that has passed through 32 bits",
                                     "keep the address in 64 bits");
        finding.path.push_back(
            {function.instructions[ssa.value(cut_by[id]).instruction].at, "it is cut to 32 bits here"});
        findings.push_back(std::move(finding));
      }
      if (user.op == ptx::Op::mov && is_rejoined(ssa, user, id)) continue;
      switch (user.op) {
        case ptx::Op::mov:
        case ptx::Op::cvt:
        case ptx::Op::cvta:
        case ptx::Op::add:
        case ptx::Op::sub:
          pass(ssa.at(user.first_operand));
          break;
        default:
          break;
      }
    }
  }
  in_program_order(findings);
  if (findings.empty())
    for (const Access& access : analyses.accesses()) {
      const Source base = flow::address_base(ssa, access.address);
      if (!addresses.contains(access.address) || base.kind != Source::Kind::value) continue;
      const flow::Fact& fact = analyses.domain().fact(base.id);
      if (fact.base == flow::kNoBase && !fact.points_to && fact.low != fact.high && fact.high <= 0xffffffff)
        return undecided(fmt::format("the address in line {} has 32 bits, and where they come from is not seen",
                                     line_of(context, access.instruction)));
    }
  return conclude(std::move(findings), "no global or generic address passes through 32 bits");
}

// F026. Directly the assembler refuses it; through a generic address it does not.
RuleResult constant_write(Context& context) {
  Analyses& analyses = context.analyses();
  std::vector<Finding> findings;
  std::string open;
  bool any = false;
  // Asked for where it matters: a module may have as many variables as parameters of kernels.
  const auto has_constants = [&] {
    return std::ranges::any_of(context.module.variables,
                               [](const ptx::Variable& each) { return each.space == Space::constant; });
  };
  for (const Access& access : analyses.accesses()) {
    if (access.kind == ptx::AccessKind::load) continue;
    any = true;
    const Source base = flow::address_base(analyses.ssa(), access.address);
    const bool direct = access.space == Space::constant;
    const flow::SpaceSet spaces =
        base.kind == Source::Kind::value ? analyses.domain().fact(base.id).points_to : flow::SpaceSet{0};
    const bool through_pointer = flow::only_space(spaces) == Space::constant;
    if (!direct && !through_pointer) {
      if (open.empty() && access.space == Space::generic &&
          ((spaces & flow::kConstantSet) || ((spaces & flow::kUnknownSpace) && has_constants())))
        open = fmt::format("whether the pointer that line {} stores through is to constant memory is not seen",
                           line_of(context, access.instruction));
      continue;
    }
    findings.push_back(finding_at(context, access.instruction, Severity::high, Tier::proved,
                                  "expected a store to writable memory, found one to constant memory on every path",
                                  "put the variable into .global, or do not write it"));
  }
  if (!any) return not_applicable("the kernel stores nothing");
  if (findings.empty() && !open.empty()) return undecided(open);
  return conclude(std::move(findings), "no store goes to constant memory");
}

// F030. A shared, local or constant address means something else to another space's instruction, and to a generic one.
// Global and generic addresses are the same numbers. Pointers that come from outside are generic, as in CUDA C++.
RuleResult space_mismatch(Context& context) {
  Analyses& analyses = context.analyses();
  std::vector<Finding> findings;
  std::string open;
  bool has_foreign = false;
  const auto& accesses = analyses.accesses();
  if (accesses.empty()) return not_applicable("the kernel accesses no memory");
  for (const Access& access : accesses) {
    const Source base = flow::address_base(analyses.ssa(), access.address);
    if (base.kind != Source::Kind::value) continue;
    const flow::Fact& fact = analyses.domain().fact(base.id);
    const auto space = flow::only_space(fact.points_to);
    const Space used = access.space == Space::shared_cluster ? Space::shared : access.space;
    if (fact.points_to && (!space || (fact.may_be_direct && fact.may_be_generic))) {
      const bool is_foreign = fact.points_to == flow::kUnknownSpace && !fact.may_be_direct;
      // mapa's addresses are in the window of the cluster's shared memory.
      const bool is_of_cluster = access.space == Space::shared_cluster && (fact.points_to & flow::kSharedSet);
      const bool fits = is_of_cluster || (is_foreign && (used == Space::global || used == Space::generic));
      has_foreign = has_foreign || is_foreign;
      if (open.empty() && !fits)
        open = fmt::format("the memory that the address in line {} points to is not known on every path",
                           line_of(context, access.instruction));
    }
    if (!space || (fact.may_be_direct && fact.may_be_generic)) continue;
    const bool is_windowed = *space == Space::shared || *space == Space::local || *space == Space::constant;
    std::string message;
    if (fact.may_be_direct && used != Space::generic && used != *space)
      message = fmt::format("expected a {} address, found one of {} memory", ptx::text(used), ptx::text(*space));
    else if (fact.may_be_direct && used == Space::generic && is_windowed)
      message = fmt::format("expected a generic address, found a {} address without cvta", ptx::text(*space));
    else if (fact.may_be_generic && used == *space && is_windowed)
      message = fmt::format("expected a {} address, found the generic address that cvta made of it", ptx::text(*space));
    else if (fact.may_be_generic && used != Space::generic && used != *space)
      message = fmt::format("expected a {} address, found a generic address of {} memory", ptx::text(used),
                            ptx::text(*space));
    if (message.empty()) continue;
    Finding finding = finding_at(context, access.instruction, Severity::high, Tier::proved, std::move(message),
                                 "convert with cvta or cvta.to, or use the instruction of the address's space");
    if (fact.base != flow::kNoBase)
      finding.path.push_back({finding.at, "the address is into " + analyses.domain().describe(fact.base)});
    findings.push_back(std::move(finding));
  }
  if (findings.empty() && !open.empty()) return undecided(open);
  std::string basis = "no address of one space is used by an instruction of another";
  if (has_foreign) basis += ", assuming that pointers from parameters and memory are generic";
  return conclude(std::move(findings), std::move(basis));
}

// F032. cvta of what is generic on every path, cvta.to of what is direct on every path, and the way there and back.
RuleResult double_cvta(Context& context) {
  Analyses& analyses = context.analyses();
  std::vector<Finding> findings;
  std::string open;
  bool any = false, has_foreign = false;
  for_each_instruction(context, [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
    if (instruction.op != ptx::Op::cvta || instruction.operand_count != 2) return;
    any = true;
    const Source from = flow::source_of(analyses.ssa(), instruction.first_operand + 1);
    if (from.kind != Source::Kind::value) return;
    const flow::Fact& fact = analyses.domain().fact(from.id);
    if (!flow::only_space(fact.points_to) || fact.may_be_direct == fact.may_be_generic) {
      const bool is_foreign = fact.points_to == flow::kUnknownSpace && !fact.may_be_direct;
      has_foreign = has_foreign || is_foreign;
      if (open.empty() && fact.points_to && !(is_foreign && instruction.to_space))
        open = fmt::format("whether line {} converts an address that is converted already is not seen on every path",
                           line_of(context, id));
      return;
    }
    if (fact.may_be_direct == instruction.to_space) {
      findings.push_back(finding_at(context, id, Severity::low, Tier::proved,
                                    instruction.to_space
                                        ? "expected a generic address, found one that is converted already"
                                        : "expected an address of one space, found one that is generic already",
                                    "use the address without the conversion"));
      return;
    }
    if (!instruction.to_space) return;
    const ptx::Instruction* there = nullptr;
    for (const flow::ValueId value : ancestors(context, from.id, kAncestorsOfAddress)) {
      const ptx::Instruction* definition = definition_of(context, value);
      if (definition && definition->op == ptx::Op::cvta && !definition->to_space &&
          definition->space == instruction.space)
        there = definition;
    }
    if (!there) return;
    findings.push_back(finding_at(context, id, Severity::low, Tier::proved,
                                  "this converts an address back that was converted to a generic one before",
                                  "compute the address from what went into the first conversion"));
    findings.back().path.push_back({there->at, "it is made generic here"});
  });
  if (!any) return not_applicable("the kernel converts no address");
  in_program_order(findings);
  if (findings.empty() && !open.empty()) return undecided(open);
  std::string basis = "no address is converted twice, or there and back";
  if (has_foreign) basis += ", assuming that pointers from parameters and memory are generic";
  return conclude(std::move(findings), std::move(basis));
}

}  // namespace ptxkit::rules
