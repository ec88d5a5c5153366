// Rules about where pointers come from and how they are used: F029, F031, F033, F034, F035, F077.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/bits.hpp"
#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/evaluate.hpp"
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
#include "analyzer/rules/engine/object_uses.hpp"
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

// F029. Every thread of the grid reads the same parameters, and hardware keeps them in constant memory. Only the kernel
// itself makes an address of one: a store through an unknown pointer can meet one whose address was given away.
RuleResult parameter_write(Context& context) {
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  if (function.parameters.empty()) return not_applicable("the kernel has no parameters");
  const auto names_parameter = [&](const ptx::Operand& operand) {
    return operand.kind == ptx::OperandKind::symbol &&
           std::find(function.parameters.begin(), function.parameters.end(), operand.id) != function.parameters.end();
  };
  std::map<ptx::VariableId, ObjectUses> objects;
  if (std::any_of(function.operand_pool.begin(), function.operand_pool.end(), names_parameter))
    objects = object_uses(context);
  const auto given_away = std::find_if(function.parameters.begin(), function.parameters.end(), [&](ptx::VariableId id) {
    const auto found = objects.find(id);
    return found != objects.end() && found->second.is_open;
  });
  std::vector<Finding> findings;
  std::string open;
  for (const Access& access : analyses.accesses()) {
    if (access.kind == AccessKind::load) continue;
    const Source base = flow::address_base(analyses.ssa(), access.address);
    if (base.kind != Source::Kind::value) continue;
    const flow::Fact& fact = analyses.domain().fact(base.id);
    if (flow::only_space(fact.points_to) != Space::param) {
      const bool may_be = fact.points_to & (flow::kParamSet | flow::kUnknownSpace);
      if (open.empty() && access.space == Space::generic && may_be && given_away != function.parameters.end())
        open = fmt::format("line {} stores through a pointer that is not followed, and so is the address of '{}'",
                           line_of(context, access.instruction), context.module.variables[*given_away].name);
      continue;
    }
    findings.push_back(finding_at(
        context, access.instruction, Severity::high, Tier::proved,
        fmt::format("expected a store to writable memory, found one to {}", analyses.domain().describe(fact.base)),
        "copy the parameter into a register or a local variable and change the copy"));
  }
  if (findings.empty() && !open.empty()) return undecided(open);
  return conclude(std::move(findings), "no store goes to a kernel parameter");
}

// F031. The two ways are ordered by address only where the hardware sees that they meet. Unoptimised code mixes them
// wherever an array decays into a pointer, so it is advice.
RuleResult mixed_access(Context& context) {
  Analyses& analyses = context.analyses();
  struct AccessPaths {
    ptx::InstructionId generic = ptx::kNone, direct = ptx::kNone;
  };
  std::map<ptx::VariableId, AccessPaths> objects;
  for (const Access& access : analyses.accesses()) {
    const ptx::VariableId object = object_of(context, access);
    if (object == ptx::kNone) continue;
    ptx::InstructionId& way = access.space == Space::generic ? objects[object].generic : objects[object].direct;
    if (way == ptx::kNone) way = access.instruction;
  }
  if (objects.empty()) return not_applicable("the kernel accesses no object by its name");
  std::vector<Finding> findings;
  for (const auto& [object, ways] : objects) {
    if (ways.generic == ptx::kNone || ways.direct == ptx::kNone) continue;
    Finding finding = finding_at(context, ways.generic, Severity::info, Tier::proved,
                                 fmt::format("'{}' is reached generically here and directly in line {}",
                                             context.module.variables[object].name, line_of(context, ways.direct)),
                                 "use the instruction of the object's space in both places");
    finding.path.push_back({context.function().instructions[ways.direct].at, "the direct access"});
    findings.push_back(std::move(finding));
  }
  in_program_order(findings);
  return advise(std::move(findings), "no object is reached both ways", "objects are reached both ways");
}

// F033. What `.ptr` says is what neither the assembler nor this analyzer has to assume.
RuleResult unannotated_pointer(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Domain& domain = analyses.domain();
  std::set<ptx::VariableId> pointers;
  for (flow::BaseId id = 0; id < domain.base_count(); ++id)
    if (domain.base(id).kind == flow::Base::Kind::parameter && domain.base(id).offset_bytes == 0 &&
        domain.is_surely_pointer(id) && !context.module.variables[domain.base(id).id].is_array)
      pointers.insert(domain.base(id).id);
  if (pointers.empty()) return not_applicable("no parameter is used as a pointer");
  std::vector<Finding> findings;
  for (const ptx::VariableId id : pointers) {
    const ptx::Variable& parameter = context.module.variables[id];
    const bool has_space = parameter.is_pointer && parameter.pointer_space != Space::generic;
    if (has_space && parameter.pointer_align) continue;
    Finding finding;
    finding.tier = Tier::proved;
    finding.at = parameter.declared_at;
    finding.message = fmt::format("expected .ptr with a state space and .align on parameter '{}', found {}",
                                  parameter.name, parameter.is_pointer ? "only a part of it" : "none");
    finding.remedy = "declare it as .ptr .global .align N";
    findings.push_back(std::move(finding));
  }
  return advise(std::move(findings), "every pointer parameter says its space and alignment",
                "pointer parameters do not say their space and alignment");
}

// F034. An address in another CTA's shared memory is what mapa makes; the own CTA's addresses are in the window too.
RuleResult cluster_address(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Ssa& ssa = analyses.ssa();
  std::vector<Finding> findings;
  bool any = false;
  auto judge = [&](ptx::InstructionId id, uint32_t address) {
    any = true;
    const Source base = flow::address_base(ssa, address);
    if (base.kind == Source::Kind::variable) return;
    bool comes_from_shared = false, opaque = false;
    if (base.kind == Source::Kind::value) {
      for (const ValueId value : ancestors(context, base.id)) {
        const ptx::Instruction* definition = definition_of(context, value);
        if (!definition) continue;
        comes_from_shared = comes_from_shared || definition->op == Op::mapa ||
                            (analyses.domain().fact(value).points_to & flow::kSharedSet);
        opaque = opaque || definition->op == Op::call || definition->op == Op::shfl ||
                 (definition->op == Op::ld && definition->space != Space::param);
      }
    }
    if (comes_from_shared || opaque) return;
    findings.push_back(finding_at(context, id, Severity::info, Tier::proved,
                                  "expected a cluster address made by mapa or the own CTA's, found one made otherwise",
                                  "make the address with mapa from a shared variable and a CTA rank"));
  };
  for (const Access& access : analyses.accesses())
    if (access.space == Space::shared_cluster) judge(access.instruction, access.address);
  if (!any) return not_applicable("the kernel has no shared::cluster access");
  return advise(std::move(findings), "every cluster address comes from mapa or is the own CTA's",
                "a cluster address comes from elsewhere");
}

namespace {

// Whether 32-bit arithmetic makes `id`, followed back through sums, from a product with an index of the grid whose
// greatest value does not fit.
ValueId overflowing_product(Context& context, ValueId start) {
  Analyses& analyses = context.analyses();
  const flow::Ssa& ssa = analyses.ssa();
  for (const ValueId id : ancestors(context, start, 32)) {
    const ptx::Instruction* definition = definition_of(context, id);
    if (!definition || flow::width_of(ssa, id) != 32) continue;
    const bool multiplies = (definition->op == Op::mul || definition->op == Op::mad) &&
                            ptx::facts_of(context.function(), *definition).product != ptx::Product::high;
    if (!multiplies && definition->op != Op::shl) continue;
    const flow::Operation operation = flow::operation_of(ssa, id);
    const flow::Fact a = fact_at(context, operation.first_source), b = fact_at(context, operation.first_source + 1);
    // A count that fits is not what scales into bytes: blocks times the block's size is the index itself.
    if (b.low != b.high || a.base != flow::kNoBase) continue;
    const uint64_t factor = definition->op == Op::shl ? uint64_t{1} << std::min<uint64_t>(b.low, 32) : b.low;
    if (factor < 2 || a.high <= 0xffffffffu / factor) continue;
    const Source index = flow::source_of(ssa, operation.first_source);
    if (index.kind == Source::Kind::value && depends_on_thread(context, index.id, true)) return id;
  }
  return flow::kNone;
}

}  // namespace

// F035. Where the offset in bytes is formed in 32 bits and widened afterwards, an array beyond 4 GiB is read from its
// beginning again.
RuleResult narrow_index(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Ssa& ssa = analyses.ssa();
  std::set<ValueId> pointers_into_global;
  for (const Access& access : analyses.accesses()) {
    if (access.space != Space::global && access.space != Space::generic) continue;
    const Source base = flow::address_base(ssa, access.address);
    if (base.kind == Source::Kind::value) pointers_into_global.insert(base.id);
  }
  if (pointers_into_global.empty()) return not_applicable("the kernel has no computed global address");
  std::vector<Finding> findings;
  std::set<ValueId> reported;
  for (const ValueId address : pointers_into_global)
    for (const ValueId id : ancestors(context, address, 32)) {
      const ptx::Instruction* definition = definition_of(context, id);
      if (!definition || definition->op != Op::cvt || flow::width_of(ssa, id) != 64 || definition->type_count < 2 ||
          ptx::bit_width(definition->types[1]) != 32)
        continue;
      const Source from = flow::source_of(ssa, flow::operation_of(ssa, id).first_source);
      if (from.kind != Source::Kind::value) continue;
      const ValueId product = overflowing_product(context, from.id);
      if (product == flow::kNone || !reported.insert(product).second) continue;
      Finding finding = finding_at(context, ssa.value(product).instruction, Severity::info, Tier::likely,
                                   "the index is scaled in 32 bits and widened afterwards",
                                   "widen first: mul.wide, or cvt.u64 before the multiply");
      finding.path.push_back({definition->at, "it is widened here"});
      finding.assumptions.push_back("the grid is large enough");
      findings.push_back(std::move(finding));
    }
  in_program_order(findings);
  return advise(std::move(findings), "every index is widened before it is scaled beyond 32 bits",
                "an index is scaled in 32 bits");
}

// F077. A conversion that cuts a value whose range is known to need more bits, on the way into an address. Where the
// range is not known the programmer's `int` may be right, and the rule stays silent.
RuleResult narrowed_address(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Ssa& ssa = analyses.ssa();
  std::set<ValueId> checked;
  std::vector<Finding> findings;
  bool any_cut = false, any_open = false;
  for (const Access& access : analyses.accesses()) {
    const Source base = flow::address_base(ssa, access.address);
    if (base.kind != Source::Kind::value) continue;
    for (const ValueId id : ancestors(context, base.id, 48)) {
      const ptx::Instruction* definition = definition_of(context, id);
      if (!definition || definition->op != Op::cvt || definition->type_count < 2) continue;
      const unsigned to = ptx::bit_width(definition->types[0]), from = ptx::bit_width(definition->types[1]);
      if (to >= from || ptx::kind(definition->types[1]) == ptx::TypeKind::floating || !checked.insert(id).second)
        continue;
      const Source source = flow::source_of(ssa, flow::operation_of(ssa, id).first_source);
      if (source.kind != Source::Kind::value) continue;
      any_cut = true;
      const flow::Fact& fact = analyses.domain().fact(source.id);
      if (fact.base != flow::kNoBase || fact.points_to || fact.high <= flow::low_mask(to)) continue;
      any_open = true;
      // A concrete thread whose value does not survive the cut.
      const auto& shape = analyses.shape();
      const uint32_t last = shape.max_tid(0);
      flow::Thread thread{{last, 0, 0}, {0, 0, 0}};
      if (shape.is_exact) std::copy_n(shape.threads, 3, thread.ntid);
      const flow::BlockId block = ssa.value(id).block;
      flow::Evaluator evaluator(analyses.forms(), thread, flow::first_iterations(analyses.loops(), block));
      const auto value = evaluator.value(source.id);
      const bool is_signed = value && (*value >> (to - 1)) == flow::low_mask(from) >> (to - 1);
      if (!value || *value <= flow::low_mask(to) || is_signed) continue;
      Finding finding =
          finding_at(context, ssa.value(id).instruction, Severity::medium, shape.is_exact ? Tier::proved : Tier::likely,
                     fmt::format("thread ({}, 0, 0) has {} here, of which {} bits are kept on the way into an address",
                                 last, *value, to),
                     "keep the offset in the wider register");
      finding.path.push_back({context.function().instructions[access.instruction].at, "the address is used here"});
      if (!shape.is_exact)
        finding.assumptions.push_back(fmt::format("the block has {} in x", plural(last + 1, "thread")));
      Witness witness;
      witness.tid[0] = last;
      witness.tid[1] = witness.tid[2] = 0;
      finding.witness = witness;
      findings.push_back(std::move(finding));
    }
  }
  if (!any_cut) return not_applicable("no narrowed value goes into an address");
  in_program_order(findings);
  if (findings.empty() && any_open) return undecided("the range of a narrowed value is not known");
  return conclude(std::move(findings), "every narrowed value that goes into an address fits");
}

}  // namespace ptxkit::rules
