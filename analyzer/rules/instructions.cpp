// Rules about instructions as such: F084, F087, F088.
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/engine/walk.hpp"
#include "support/plural.hpp"

namespace ptxkit::rules {

using ptx::Op;

// F084. Decided by running, not by reading: tools bring the runner, because rules know no backend.
RuleResult optimisation_sensitive(Context& context) {
  if (!context.options.differential) return not_applicable("needs --differential, which runs the kernel");
  const Differential found = context.options.differential(context.module, context.function_id);
  switch (found.outcome) {
    case Differential::Outcome::same:
      return survived("one result from " + found.what);
    case Differential::Outcome::not_run:
      return undecided("not checked: " + found.what);
    case Differential::Outcome::different:
      break;
  }
  Finding finding;
  finding.severity = Severity::high;
  finding.tier = Tier::proved;
  finding.at = context.function().at;
  finding.message = "the kernel's result differs: " + found.what;
  finding.remedy = "look for relaxed or volatile accesses of several threads that nothing orders";
  return conclude({std::move(finding)}, "");
}

// F087. PTX ISA 9.0: shfl and vote without .sync are deprecated from PTX 6.0 on and gone on sm_70 and later;
// .maxnctapersm was replaced in PTX 2.0.
RuleResult deprecated_opcode(Context& context) {
  std::vector<Finding> findings;
  const bool independent = context.module.target_sm >= 70;
  for_each_instruction(context, [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
    const bool collective = instruction.op == Op::shfl || instruction.op == Op::vote;
    if (!independent || !collective || ptx::facts_of(context.function(), instruction).is_synchronous) return;
    findings.push_back(finding_at(context, id, Severity::medium, Tier::proved,
                                  fmt::format("{} without .sync is deprecated, and lanes of {} need not run in step",
                                              ptx::text(instruction.op), context.module.target),
                                  fmt::format("use {}.sync with a member mask", ptx::text(instruction.op))));
  });
  if (context.function().attributes.max_ctas_per_sm) {
    Finding finding;
    finding.severity = Severity::medium;
    finding.tier = Tier::proved;
    finding.at = context.function().at;
    finding.message = "expected .minnctapersm, found .maxnctapersm, which is deprecated";
    finding.remedy = "use .minnctapersm";
    findings.insert(findings.begin(), std::move(finding));
  }
  return conclude(std::move(findings), "the kernel uses nothing that is deprecated for its target");
}

// F088. The ISA table knows every shape with its types, layouts and targets, and a text with another one does not come
// this far: diagnostics.hpp says which of the front end's findings are this rule's.
RuleResult mma_shape(Context& context) {
  size_t count = 0;
  for_each_instruction(context, [&](ptx::InstructionId, const ptx::Instruction& instruction) {
    count += instruction.op == Op::mma || instruction.op == Op::wmma || instruction.op == Op::wgmma ||
             instruction.op == Op::ldmatrix || instruction.op == Op::stmatrix || instruction.op == Op::movmatrix ||
             (instruction.op == Op::tcgen05 && ptx::facts_of(context.function(), instruction).multiplies_matrices);
  });
  if (count == 0) return not_applicable("the kernel has no matrix instruction");
  return survived(fmt::format("{}, each a form of the ISA table for {}", plural(count, "matrix instruction"),
                              context.module.target));
}

}  // namespace ptxkit::rules
