// `analyze --replay`: findings that a run could show, run on the emulator.
#pragma once

#include "analyzer/analyze/analysis.hpp"

namespace ptxkit::tools {

// Replays each finding of severity high or above, of a rule that the emulator has a fault for. Launches are made up
// from the launch facts of `options`. A finding whose witness is refuted is `possible` from then on, at most medium,
// and a rule that has no other is undecided; score and status follow.
void replay_findings(report::FileAnalysis& file, const report::AnalysisOptions& options);

}  // namespace ptxkit::tools
