#include "tools/ptx-debug/replay_findings.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/replay.hpp"

namespace ptxkit::tools {
namespace {

// Rules that a fault of the emulator speaks of, and those that are seen as one of them.
constexpr std::string_view kRunnable[] = {"F021", "F025", "F026", "F029", "F036", "F037", "F038",
                                          "F039", "F046", "F049", "F050", "F051", "F054", "F055",
                                          "F060", "F065", "F067", "F071", "F081", "F082", "F085"};

std::string text_of(const Replayed& replayed) {
  static constexpr std::string_view kWords[] = {"confirmed", "not seen", "not run"};
  return fmt::format("replay on the emulator: {}: {}", kWords[static_cast<size_t>(replayed.outcome)], replayed.what);
}

}  // namespace

void replay_findings(report::FileAnalysis& file, const rules::LaunchSet& launch) {
  const ptx::Module& module = file.parsed.module;
  for (report::KernelAnalysis& kernel : file.kernels) {
    if (kernel.function == ptx::kNone) continue;
    const ptx::Function& function = module.functions[kernel.function];
    const auto facts = launch.find(std::string(function.name));
    for (report::RuleVerdict& verdict : kernel.verdicts) {
      if (std::ranges::find(kRunnable, verdict.rule->id) == std::end(kRunnable)) continue;
      for (rules::Finding& finding : verdict.result.findings) {
        if (finding.severity < rules::Severity::high || finding.instruction == ptx::kNone) continue;
        const Replayed replayed = replay(module, kernel.function, facts == launch.end() ? nullptr : &facts->second,
                                         verdict.rule->id, finding);
        finding.evidence += (finding.evidence.empty() ? "" : "; ") + text_of(replayed);
      }
    }
  }
}

}  // namespace ptxkit::tools
