// Rules about what has no effect: parameters nobody reads, values nobody uses, and the misaligned access that hides
// there.
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/alignment.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/dead_stores.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

using flow::Value;
using flow::ValueId;
using ptx::Op;

namespace {

// Values that something with an effect depends on: everything that a store, a branch, a barrier or a call reads, and
// what that is computed from.
std::vector<bool> live_values(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Ssa& ssa = analyses.ssa();
  const ptx::Function& function = context.function();
  std::vector<bool> live(ssa.size(), false);
  std::vector<ValueId> work;
  auto mark = [&](ValueId id) {
    if (id == flow::kNone || live[id]) return;
    live[id] = true;
    work.push_back(id);
  };
  auto mark_inputs = [&](ptx::InstructionId id) {
    mark(ssa.guard(id));
    ptx::for_each_register(function, function.instructions[id], [&](uint32_t index, const ptx::Operand&, bool written) {
      if (!written) mark(ssa.at(index));
    });
  };
  for (const flow::BlockId block : analyses.graph().reverse_postorder())
    for (ptx::InstructionId id = analyses.graph().block(block).first; id < analyses.graph().block(block).end; ++id)
      if (!ptx::only_writes_destination(function, function.instructions[id])) mark_inputs(id);
  while (!work.empty()) {
    const ValueId id = work.back();
    work.pop_back();
    const Value& value = ssa.value(id);
    if (value.kind == Value::Kind::phi)
      for (const ValueId argument : ssa.arguments(id)) mark(argument);
    if (value.kind != Value::Kind::result) continue;
    mark(value.old);
    mark_inputs(value.instruction);
  }
  return live;
}

bool all_dead(Context& context, ptx::InstructionId id, const std::vector<bool>& live) {
  bool any = false, dead = true;
  ptx::for_each_register(context.function(), context.function().instructions[id],
                         [&](uint32_t index, const ptx::Operand&, bool written) {
                           if (!written) return;
                           any = true;
                           const ValueId value = context.analyses().ssa().at(index);
                           dead = dead && value != flow::kNone && !live[value];
                         });
  return any && dead;
}

}  // namespace

// F073. What the assembler will delete: harmless, but it is never what was meant. Comparisons and copies are left out:
// compilers make them in advance and do not always come back for them. Every fifth kernel of unoptimised or generated
// code has some, so it is advice: refuted, but no points are lost.
RuleResult dead_value(Context& context) {
  Analyses& analyses = context.analyses();
  const std::vector<bool> live = live_values(context);
  std::vector<Finding> findings;
  for (const flow::BlockId block : analyses.graph().reverse_postorder())
    for (ptx::InstructionId id = analyses.graph().block(block).first; id < analyses.graph().block(block).end; ++id) {
      const ptx::Instruction& instruction = context.function().instructions[id];
      if (instruction.op == Op::setp || instruction.op == Op::mov || instruction.op == Op::cvt) continue;
      if (!ptx::only_writes_destination(context.function(), instruction) || !all_dead(context, id, live)) continue;
      findings.push_back(finding_at(context, id, Severity::info, Tier::proved,
                                    fmt::format("nothing uses the result of {}", instruction.spelling),
                                    "delete the instruction, or use its result"));
    }
  for (const DeadStore& dead : dead_stores(context)) {
    const bool is_overwritten = dead.overwritten_by != ptx::kNone;
    Finding finding = finding_at(
        context, dead.store, Severity::info, Tier::proved,
        is_overwritten
            ? fmt::format("line {} overwrites what this stores before anything reads it",
                          line_of(context, dead.overwritten_by))
            : fmt::format("nothing reads what this stores to '{}'", context.module.variables[dead.object].name),
        is_overwritten ? "delete one of the stores" : "delete the store, or read what it stores");
    if (is_overwritten)
      finding.path.push_back({context.function().instructions[dead.overwritten_by].at, "it is overwritten here"});
    findings.push_back(std::move(finding));
  }
  in_program_order(findings);
  return advise(std::move(findings), "every value and every store reaches a branch, a result or another effect",
                "instructions compute or store what nothing uses");
}

namespace {

enum class Place : uint8_t { inside, open, outside };

// Whether an access stays in its object; inside where the size of the object is not known.
Place place_in_object(Context& context, const ptx::Access& access) {
  Analyses& analyses = context.analyses();
  const flow::Form form = analyses.forms().expand(analyses.forms().address(access));
  const flow::Base& base = analyses.domain().base(form.base);
  if (base.kind != flow::Base::Kind::variable && base.kind != flow::Base::Kind::parameter) return Place::inside;
  const ptx::Variable& variable = context.module.variables[base.id];
  uint64_t size = 0;
  if (base.kind == flow::Base::Kind::variable)
    size = variable.is_unsized ? 0 : variable.size_bytes;
  else if (base.offset_bytes == 0)
    size = analyses.shape().size_bytes(variable.name);
  if (size == 0) return Place::inside;
  const flow::Interval range = analyses.forms().interval(form);
  const auto last = static_cast<int64_t>(size) - static_cast<int64_t>(access.extent_bytes);
  if (range.low > last || range.high < 0) return Place::outside;
  return range.low >= 0 && range.high <= last ? Place::inside : Place::open;
}

}  // namespace

// F074. The assembler deletes a load that nothing uses, and with it the fault: the kernel runs until an edit uses the
// value. This is how the F081 hunt began.
RuleResult masked_fault(Context& context) {
  Analyses& analyses = context.analyses();
  const auto& accesses = analyses.accesses();
  const auto& judged = analyses.alignment().of_accesses();
  bool any = false;
  for (const ptx::Access& access : accesses) any = any || access.kind == ptx::AccessKind::load;
  if (!any) return not_applicable("the kernel loads nothing");
  const std::vector<bool> live = live_values(context);
  std::vector<Finding> findings;
  for (size_t i = 0; i < accesses.size(); ++i) {
    const ptx::Instruction& instruction = context.function().instructions[accesses[i].instruction];
    if (accesses[i].kind != ptx::AccessKind::load || !ptx::only_writes_destination(context.function(), instruction))
      continue;
    if (!all_dead(context, accesses[i].instruction, live)) continue;
    if (judged[i].status == AlignmentStatus::proved) {
      const Place place = place_in_object(context, accesses[i]);
      if (place == Place::inside) continue;
      findings.push_back(finding_at(
          context, accesses[i].instruction, place == Place::outside ? Severity::high : Severity::medium,
          place == Place::outside ? Tier::proved : Tier::possible,
          fmt::format("nothing uses this {}-byte load, so it is deleted with the fault that its address {}: it {} "
                      "outside of {}",
                      accesses[i].width_bytes, place == Place::outside ? "would cause" : "may cause",
                      place == Place::outside ? "is" : "is not proved not to be",
                      analyses.domain().describe(analyses.forms().address(accesses[i]).base)),
          "bound the index before the value is used again, or delete the load"));
      continue;
    }
    const bool known = judged[i].status == AlignmentStatus::refuted || judged[i].byte_granular;
    Finding finding = finding_at(
        context, accesses[i].instruction, known ? Severity::high : Severity::medium,
        known ? Tier::likely : Tier::possible,
        fmt::format("nothing uses this {}-byte load, so it is deleted with the fault that its address would cause: {}",
                    accesses[i].width_bytes, judged[i].reason),
        "make the address a multiple of the width before the value is used again, or delete the load");
    finding.assumptions = judged[i].assumptions;
    finding.path = judged[i].path;
    finding.witness = judged[i].witness;
    findings.push_back(std::move(finding));
  }
  return conclude(std::move(findings),
                  "every load is used, or proved aligned and inside its object, where that has a size");
}

// F072. By name: a parameter that no instruction mentions. Every third kernel of a C++ library has one (empty function
// objects, arguments that a specialisation does not need), so it is advice: refuted, but no points are lost.
RuleResult unused_parameter(Context& context) {
  const ptx::Function& function = context.function();
  if (function.parameters.empty()) return not_applicable("the kernel has no parameters");
  std::set<ptx::VariableId> named;
  for (const ptx::Operand& operand : function.operand_pool)
    if (operand.kind == ptx::OperandKind::symbol ||
        (operand.kind == ptx::OperandKind::address && operand.base == ptx::AddressBase::variable))
      named.insert(operand.id);
  std::vector<Finding> findings;
  for (const ptx::VariableId id : function.parameters) {
    if (named.contains(id)) continue;
    Finding finding;
    finding.severity = Severity::info;
    finding.tier = Tier::proved;
    finding.at = context.module.variables[id].declared_at;
    finding.message = fmt::format("parameter '{}' is never read", context.module.variables[id].name);
    finding.remedy = "drop the parameter, or read it";
    findings.push_back(std::move(finding));
  }
  return advise(std::move(findings), "every parameter is read", "parameters are passed but never read");
}

}  // namespace ptxkit::rules
