#include "analyzer/rules/engine/result.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "analyzer/flow/inline.hpp"
#include "support/plural.hpp"

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

void merge_by_source(const Context& context, std::vector<Finding>& findings) {
  std::map<std::tuple<ptx::LocationId, Severity, Tier, std::string>, size_t> first;
  std::vector<Finding> kept;
  std::vector<std::vector<Step>> others;
  for (Finding& finding : findings) {
    const ptx::LocationId location =
        finding.instruction == ptx::kNone ? ptx::kNone : context.function().instructions[finding.instruction].location;
    if (location != ptx::kNone) {
      const auto [same, is_new] =
          first.try_emplace({location, finding.severity, finding.tier, finding.remedy}, kept.size());
      if (!is_new) {
        others[same->second].push_back({finding.at, "the same here: " + finding.message});
        continue;
      }
    }
    kept.push_back(std::move(finding));
    others.emplace_back();
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    if (others[i].empty()) continue;
    kept[i].message += fmt::format(", and so at {} of this source line", plural(others[i].size(), "more place"));
    std::ranges::move(others[i], std::back_inserter(kept[i].path));
  }
  findings = std::move(kept);
}

namespace {

// The chain of calls that leads to an instruction, outermost first.
std::vector<Step> chain_of(const Context& context, ptx::InstructionId id) {
  const flow::Inlined& inlined = *context.inlined();
  std::vector<Step> calls;
  for (uint32_t call = inlined.origins[id].call; call != ptx::kNone; call = inlined.calls[call].from) {
    const flow::FollowedCall& followed = inlined.calls[call];
    calls.push_back({context.module.functions[followed.caller].instructions[followed.instruction].at,
                     fmt::format("'{}' is called here", context.module.functions[followed.callee].name)});
  }
  std::ranges::reverse(calls);
  return calls;
}

}  // namespace

void place_findings(const Context& context, RuleResult& result) {
  std::set<std::tuple<ptx::Offset, Severity, std::string>> seen;
  const bool had_findings = !result.findings.empty();
  std::erase_if(result.findings, [&](Finding& finding) {
    if (finding.instruction == ptx::kNone) return false;
    finding.location = context.function().instructions[finding.instruction].location;
    if (!context.inlined()) return false;
    // Skip moves that inlining inserted for parameters.
    if (context.inlined()->origins[finding.instruction].is_made) return true;
    const std::vector<Step> calls = chain_of(context, finding.instruction);
    if (calls.empty()) return false;
    finding.path.insert(finding.path.begin(), calls.begin(), calls.end());
    return !seen.emplace(finding.at, finding.severity, finding.message).second;
  });
  if (had_findings && result.findings.empty() && result.verdict == Verdict::refuted)
    result = survived("what was found is only how parameters are passed");
}

uint32_t line_of(const Context& context, ptx::InstructionId id) {
  return context.module.position(context.function().instructions[id].at).line;
}

}  // namespace ptxkit::rules
