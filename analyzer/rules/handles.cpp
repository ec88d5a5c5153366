// F027 and F028: the handles of texture and surface instructions.
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/operation.hpp"
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
using ptx::Op;
using ptx::OperandKind;
using ptx::Type;

namespace {

std::string_view handle_kind_name(Type type) {
  return type == Type::texref ? "texture" : type == Type::samplerref ? "sampler" : "surface";
}

// A valid handle is the name of an opaque variable, its address, or a 64-bit number from the host. A number that the
// kernel computes and the address of another object are not handles.
void judge(Context& context, ptx::InstructionId id, const Source& source, Type wanted, std::vector<Finding>& findings) {
  Analyses& analyses = context.analyses();
  ptx::VariableId variable = ptx::kNone;
  bool constant = source.kind == Source::Kind::constant;
  if (source.kind == Source::Kind::variable) variable = source.id;
  if (source.kind == Source::Kind::value) {
    const flow::Fact& fact = analyses.domain().fact(source.id);
    const flow::Base& base = analyses.domain().base(fact.base);
    if (base.kind == flow::Base::Kind::variable) variable = base.id;
    constant = fact.reached && base.kind == flow::Base::Kind::none && fact.bits.known() == ~0ull;
  }
  if (constant) {
    findings.push_back(finding_at(context, id, Severity::medium, Tier::proved,
                                  fmt::format("expected a {} handle, found a constant", handle_kind_name(wanted)),
                                  "pass the handle that the host made, or name the declared reference"));
  } else if (variable != ptx::kNone && context.module.variables[variable].type != wanted) {
    findings.push_back(finding_at(
        context, id, Severity::medium, Tier::proved,
        fmt::format("expected a {} handle, found the address of '{}', which is .{}", handle_kind_name(wanted),
                    context.module.variables[variable].name, ptx::text(context.module.variables[variable].type)),
        fmt::format("declare it .{}, or use the instruction of its kind", ptx::text(wanted))));
  }
}

RuleResult judge_handles(Context& context, bool surfaces) {
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  std::vector<Finding> findings;
  size_t count = 0;
  for_each_instruction(context, [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
    const Op op = instruction.op;
    const bool of_surface = op == Op::suld || op == Op::sust || op == Op::sured || op == Op::suq;
    const bool of_texture = op == Op::tex || op == Op::tld4 || op == Op::txq;
    if (surfaces ? !of_surface : !of_texture) return;
    for (uint32_t i = 0; i < instruction.operand_count; ++i) {
      const uint32_t index = instruction.first_operand + i;
      const ptx::Operand& operand = function.operand_pool[index];
      if (operand.kind != OperandKind::address) continue;
      ++count;
      const Source handle = flow::address_base(analyses.ssa(), index);
      // txq accepts samplers too.
      const bool is_sampler = op == Op::txq && handle.kind == Source::Kind::variable &&
                              context.module.variables[handle.id].type == Type::samplerref;
      judge(context, id, handle, surfaces ? Type::surfref : is_sampler ? Type::samplerref : Type::texref, findings);
      if (op == Op::txq || op == Op::suq || surfaces || operand.child_count < 2) continue;
      const ptx::Operand& sampler = function.operand_pool[operand.first_child];
      if (sampler.kind == OperandKind::symbol || sampler.kind == OperandKind::reg)
        judge(context, id, flow::source_of(analyses.ssa(), operand.first_child), Type::samplerref, findings);
    }
  });
  if (count == 0) return not_applicable(surfaces ? "the kernel uses no surface" : "the kernel uses no texture");
  return conclude(std::move(findings), plural(count, "handle") + ", each a reference of its kind or made by the host");
}

}  // namespace

RuleResult texture_reference(Context& context) { return judge_handles(context, false); }
RuleResult surface_reference(Context& context) { return judge_handles(context, true); }

}  // namespace ptxkit::rules
