// `analyze --replay`: runs findings on the emulator.
#pragma once

#include "analyzer/analyze/analysis.hpp"

namespace ptxkit::tools {

// Replays each finding of severity high or critical of a rule that the emulator has a fault for. The launch facts of
// `options` shape the generated launches. A finding whose witness is refuted becomes `possible`, of severity medium at
// most. A rule without another finding becomes undecided. Score and status are updated.
void replay_findings(report::FileAnalysis& file, const report::AnalysisOptions& options);

}  // namespace ptxkit::tools
