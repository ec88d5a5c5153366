// F021, F081, F082: the patterns of the original crash hunt. What they really are is in catalogue.md and in
// docs/rules/: a misaligned access hidden by dead-code elimination. So a site has the verdict of F051 on its load and
// on the store that it feeds, the worse of the two; where both are proved aligned, the hardware's evidence decides.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/evidence/evidence.hpp"
#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/alignment.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/pattern_sites.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/engine/taint.hpp"
#include "support/plural.hpp"

namespace ptxkit::rules {

using ptx::Access;
using ptx::Space;

namespace {

// Severity, tier and evidence of a site, whose worst access is `alignment`: what F051 says of that access.
void judge_site(const Context& context, std::string_view rule, const AccessAlignment& alignment, Finding& finding) {
  if (context.options.profile == Profile::pattern) {
    finding.severity = Severity::critical;
    finding.tier = Tier::proved;
    return;
  }
  finding.assumptions = alignment.assumptions;
  if (alignment.status != AlignmentStatus::proved) {
    finding.severity = severity_of(alignment);
    finding.tier = alignment.tier;
    finding.witness = alignment.witness;
    return;
  }
  finding.tier = Tier::possible;
  finding.severity = Severity::info;
  if (!context.options.evidence) return;
  if (auto confirmed = context.options.evidence->confirmed_by(rule, context.module.target_sm)) {
    finding.severity = Severity::critical;
    finding.tier = Tier::likely;
    finding.assumptions.push_back("the kernel runs on a device of the measured family");
    finding.evidence = std::move(*confirmed);
  } else if (auto refuted = context.options.evidence->refuted_by(rule, context.module.target_sm)) {
    finding.evidence = std::move(*refuted);
  }
}

constexpr std::string_view kRemedy =
    "keep the address a multiple of the width, or load bytes and put them together with shifts";

// What the sites of a kernel add up to; at `open` of them an access is not proved aligned. An open site costs no points
// here: the question is that of F051, which has lost them.
RuleResult conclude_sites(const Context& context, std::vector<Finding> findings, size_t open, std::string none) {
  const size_t sites = findings.size();
  if (sites == 0) return survived(std::move(none));
  RuleResult result = conclude(std::move(findings), "");
  const bool is_pattern = context.options.profile == Profile::pattern;
  if (result.verdict == Verdict::refuted) {
    result.basis = is_pattern ? "the pattern occurs; this profile takes every site as the defect"
                              : "a site has a misaligned or byte-granular access";
  } else if (open > 0) {
    result.verdict = Verdict::undecided;
    result.basis = fmt::format("the alignment of {} of {} is not proved; F051 has that verdict and its points", open,
                               plural(sites, "site"));
  } else if (result.findings.front().evidence.empty()) {
    result.verdict = Verdict::undecided;
    result.basis = fmt::format("{} proved aligned, but no evidence covers target {}", plural(sites, "site"),
                               context.module.target);
  } else {
    result.basis = fmt::format("{} proved aligned; the hypothesis is refuted by {}", plural(sites, "site"),
                               result.findings.front().evidence);
  }
  return result;
}

std::string describe(const AccessAlignment& alignment) {
  switch (alignment.status) {
    case AlignmentStatus::proved:
      return "proved aligned";
    case AlignmentStatus::undecided:
      return "not proved aligned: " + alignment.reason;
    case AlignmentStatus::refuted:
      return "misaligned: " + alignment.reason;
  }
  return {};
}

// F081 and F082 differ in which operand of the store the value reaches.
RuleResult shared_value_reaches(Context& context, std::string_view rule, StoreOperand store_operand) {
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  const auto& accesses = analyses.accesses();
  const auto& judged = analyses.alignment().of_accesses();
  bool any_load = false;
  for (const Access& access : accesses) any_load = any_load || is_shared_load(function, access);
  if (!any_load) return not_applicable("the kernel loads nothing from shared memory");

  const bool is_root_cause = context.options.profile == Profile::root_cause;
  std::vector<Sink> sinks;
  for (size_t i = 0; i < accesses.size(); ++i)
    for (const flow::ValueId value : operand_values(context, accesses[i], store_operand))
      sinks.push_back({value, accesses[i].instruction, is_root_cause ? rank_of(judged[i]) : 0});
  const Taint taint(context, std::move(sinks), context.options.profile);

  std::vector<Finding> findings;
  size_t open = 0;
  for (size_t i = 0; i < accesses.size(); ++i) {
    const Access& access = accesses[i];
    if (!is_shared_load(function, access)) continue;
    flow::ValueId worst = flow::kNone;
    for (const flow::ValueId value : loaded_values(context, access))
      if (taint.reaches(value) && (worst == flow::kNone || taint.alignment_rank(value) > taint.alignment_rank(worst)))
        worst = value;
    if (worst == flow::kNone) continue;
    const ptx::InstructionId store = taint.store_of(worst);
    const AccessAlignment* of_store = analyses.alignment().of_instruction(store);
    const AccessAlignment* decisive = of_store && rank_of(*of_store) > rank_of(judged[i]) ? of_store : &judged[i];
    Finding finding = finding_at(
        context, access.instruction, Severity::info, Tier::possible,
        fmt::format("the {}-byte value loaded from shared memory {} the store in line {}; the load is {}, the store {}",
                    access.width_bytes, store_operand == StoreOperand::data ? "is stored by" : "forms the address of",
                    line_of(context, store), describe(judged[i]), of_store ? describe(*of_store) : "not followed"),
        std::string(kRemedy));
    judge_site(context, rule, *decisive, finding);
    open += decisive->status != AlignmentStatus::proved;
    finding.path = decisive->path;
    finding.path.push_back({finding.at, "loaded from shared memory here"});
    const auto way = taint.path(worst, context);
    finding.path.insert(finding.path.end(), way.begin(), way.end());
    findings.push_back(std::move(finding));
  }
  return conclude_sites(context, std::move(findings), open,
                        store_operand == StoreOperand::data
                            ? "no value loaded from shared memory reaches the data of a store"
                            : "no value loaded from shared memory reaches the address of a store");
}

}  // namespace

RuleResult generic_address_corruption(Context& context) {
  Analyses& analyses = context.analyses();
  const auto& accesses = analyses.accesses();
  const auto& judged = analyses.alignment().of_accesses();
  std::vector<Finding> findings;
  bool any = false;
  size_t open = 0;
  for (size_t i = 0; i < accesses.size(); ++i) {
    const Access& access = accesses[i];
    if (access.space != Space::generic) continue;
    any = true;
    if (!is_generic_of_shared(context, access)) continue;
    Finding finding = finding_at(
        context, access.instruction, Severity::info, Tier::possible,
        fmt::format("generic access to an address that comes from cvta.shared; it is {}", describe(judged[i])),
        "use the shared address directly, without cvta");
    judge_site(context, "F021", judged[i], finding);
    open += judged[i].status != AlignmentStatus::proved;
    finding.path = judged[i].path;
    findings.push_back(std::move(finding));
  }
  if (!any) return not_applicable("the kernel has no generic access");
  return conclude_sites(context, std::move(findings), open,
                        "no generic access has an address that comes from cvta.shared");
}

RuleResult loaded_value_bug(Context& context) { return shared_value_reaches(context, "F081", StoreOperand::data); }

RuleResult computed_address_from_loaded(Context& context) {
  return shared_value_reaches(context, "F082", StoreOperand::address);
}

// F083. The conversion gives the same address in every iteration.
RuleResult loop_cvta_shared(Context& context) {
  Analyses& analyses = context.analyses();
  std::vector<Finding> findings;
  bool any = false;
  for (const flow::BlockId block : analyses.graph().reverse_postorder())
    for (ptx::InstructionId id = analyses.graph().block(block).first; id < analyses.graph().block(block).end; ++id) {
      const ptx::Instruction& instruction = context.function().instructions[id];
      if (instruction.op != ptx::Op::cvta || instruction.space != Space::shared || instruction.to_space) continue;
      any = true;
      const flow::LoopId loop = analyses.loops().innermost(block);
      if (loop == flow::kNone) continue;
      const flow::Source from = flow::source_of(analyses.ssa(), instruction.first_operand + 1);
      bool invariant = from.kind == flow::Source::Kind::variable || from.kind == flow::Source::Kind::constant;
      if (from.kind == flow::Source::Kind::value) {
        // The address of a variable, wherever the instruction that takes it stands.
        const flow::Fact& fact = analyses.domain().fact(from.id);
        invariant = !analyses.loops().contains(loop, analyses.ssa().value(from.id).block) ||
                    (fact.reached && fact.bits.known() == ~0ull);
      }
      if (!invariant) continue;
      findings.push_back(finding_at(context, id, Severity::low, Tier::proved,
                                    "the conversion gives the same address in every iteration of the loop",
                                    "move the cvta.shared before the loop, or use the shared address directly"));
    }
  if (!any) return not_applicable("the kernel has no cvta.shared");
  return advise(std::move(findings), "no loop repeats a cvta.shared of one address", "a loop repeats a conversion");
}

}  // namespace ptxkit::rules
