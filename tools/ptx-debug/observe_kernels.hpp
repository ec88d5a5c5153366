// `analyze --run`: runs kernels on the emulator and adds what it sees to the findings of the rules.
#pragma once

#include <string>
#include <vector>

#include "analyzer/analyze/analysis.hpp"

namespace ptxkit::tools {

struct RunChoice {
  bool is_off = false;        // --no-run
  bool with_made_up = false;  // --run: also kernels whose grid and block the launch files do not give
  double kernel_seconds = 0;  // --run-seconds: of a nominal processor, so that results do not depend on the machine
  std::vector<std::string> launch_paths;  // for the commands that repeat a launch
};

// Runs the kernels of the current part of `file`. A fault becomes a finding of the rule that describes it, or confirms
// the finding that this rule or a related one has at the same place. A rule that was not asked for gets none. Score and
// status are updated.
void observe_kernels(report::FileAnalysis& file, const report::AnalysisOptions& options, const RunChoice& choice);

}  // namespace ptxkit::tools
