#include "tools/ptx-debug/replay_findings.hpp"

#include <algorithm>

#include "runtime/launch/replay.hpp"
#include "support/plural.hpp"

namespace ptxkit::tools {
namespace {

// Rules that correspond to a fault of the emulator, directly or through a related rule.
constexpr std::string_view kRunnable[] = {"F021", "F025", "F026", "F029", "F036", "F037", "F038", "F039",
                                          "F045", "F046", "F049", "F050", "F051", "F054", "F055", "F060",
                                          "F065", "F067", "F071", "F081", "F082", "F085"};

bool is_refuted(const rules::Finding& finding) {
  return finding.replay && finding.replay->outcome == rules::Replay::Outcome::refuted;
}

// A finding whose witness runs clean has no witness left, so it drops to the lowest tier.
void downgrade_refuted(report::RuleVerdict& verdict) {
  auto& findings = verdict.result.findings;
  const auto refuted_count = static_cast<size_t>(std::ranges::count_if(findings, is_refuted));
  if (refuted_count == 0) return;
  for (rules::Finding& finding : findings) {
    if (!is_refuted(finding)) continue;
    finding.tier = rules::Tier::possible;
    finding.severity = std::min(finding.severity, rules::Severity::medium);
  }
  const bool is_shown = std::ranges::any_of(findings, [](const rules::Finding& finding) {
    return finding.severity != rules::Severity::info && !is_refuted(finding);
  });
  if (is_shown) return;
  verdict.result.verdict = rules::Verdict::undecided;
  verdict.result.loses_points = false;
  verdict.result.basis = plural(refuted_count, "counter-example") + " ran clean on the emulator, and there is no other";
}

}  // namespace

void replay_findings(report::FileAnalysis& file, const report::AnalysisOptions& options) {
  const ptx::Module& module = file.parsed.module;
  for (report::KernelAnalysis& kernel : file.kernels) {
    if (kernel.function == ptx::kNone) continue;
    const ptx::Function& function = module.functions[kernel.function];
    const rules::LaunchSet& launch = *options.rules.launch;
    const auto facts = launch.find(function.name);
    for (report::RuleVerdict& verdict : kernel.verdicts) {
      if (std::ranges::find(kRunnable, verdict.rule->id) == std::end(kRunnable)) continue;
      for (rules::Finding& finding : verdict.result.findings) {
        if (finding.severity < rules::Severity::high || finding.instruction == ptx::kNone) continue;
        finding.replay = replay(module, kernel.function, facts == launch.end() ? nullptr : &facts->second,
                                verdict.rule->id, finding);
      }
      downgrade_refuted(verdict);
    }
  }
  if (file.score) report::rescore(file, options);
}

}  // namespace ptxkit::tools
