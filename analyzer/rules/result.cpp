#include "analyzer/rules/result.hpp"

#include <algorithm>

namespace ptxkit::rules {

Finding finding_at(const Context& context, ptx::InstructionId id, Severity severity, Tier tier, std::string message,
                   std::string remedy) {
  Finding finding;
  finding.severity = severity;
  finding.tier = tier;
  finding.instruction = id;
  finding.at = context.function().instructions[id].at;
  finding.message = std::move(message);
  finding.remedy = std::move(remedy);
  return finding;
}

namespace {

RuleResult with(Verdict verdict, std::string basis) {
  RuleResult result;
  result.verdict = verdict;
  result.basis = std::move(basis);
  return result;
}

}  // namespace

RuleResult not_applicable(std::string basis) { return with(Verdict::not_applicable, std::move(basis)); }
RuleResult survived(std::string basis) { return with(Verdict::survived, std::move(basis)); }
RuleResult undecided(std::string basis) { return with(Verdict::undecided, std::move(basis)); }

RuleResult conclude(std::vector<Finding> findings, std::string basis) {
  RuleResult result = survived(std::move(basis));
  result.findings = std::move(findings);
  const auto counts = [](const Finding& finding) { return finding.severity > Severity::info; };
  if (std::any_of(result.findings.begin(), result.findings.end(),
                  [&](const Finding& finding) { return counts(finding) && finding.tier != Tier::possible; })) {
    result.verdict = Verdict::refuted;
    result.loses_points = true;
    result.basis = "a counter-example was found";
  } else if (std::any_of(result.findings.begin(), result.findings.end(), counts)) {
    result.verdict = Verdict::undecided;
    result.basis = "neither proved nor refuted at the places listed";
  }
  return result;
}

RuleResult advise(std::vector<Finding> findings, std::string survived_basis, std::string refuted_basis) {
  const bool any = !findings.empty();
  RuleResult result = conclude(std::move(findings), std::move(survived_basis));
  if (any) {
    result.verdict = Verdict::refuted;
    result.basis = std::move(refuted_basis);
  }
  return result;
}

void in_program_order(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.instruction < b.instruction; });
}

uint32_t line_of(const Context& context, ptx::InstructionId id) {
  return context.module.position(context.function().instructions[id].at).line;
}

}  // namespace ptxkit::rules
