// `analyze --replay`: findings that a run could show, run on the emulator.
#pragma once

#include "analyzer/report/analysis.hpp"
#include "analyzer/rules/launch_file.hpp"

namespace ptxkit::tools {

// Adds to the evidence of each finding of severity high or above, of a rule that the emulator has a fault for, whether
// a replay confirmed it. Launches are made up from the launch facts.
void replay_findings(report::FileAnalysis& file, const rules::LaunchSet& launch);

}  // namespace ptxkit::tools
