// Does the emulator see what a rule says? A finding of the analyzer, run.
#pragma once

#include <string_view>

#include "analyzer/flow/launch.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit {

// Runs `kernel` until a fault of `rule` appears at the line of `finding`: on generated launches, and on the same with
// what its witness says, where it has one (a block that has its threads, buffers that hold what it loads). A buffer of
// made-up size that a launch leaves grows, unless bounds are what the rule speaks of. Each launch runs with all checks
// on and then, for what lies behind another fault, with the rule's alone, bounds and alignment in that line only. F021,
// F081 and F082 are seen as the misaligned access (F051) that they are. `facts` may be null; what they promise goes
// before what the witness says. Requires: the finding has an instruction.
rules::Replay replay(const ptx::Module& module, ptx::FunctionId kernel, const flow::LaunchFacts* facts,
                     std::string_view rule, const rules::Finding& finding);

}  // namespace ptxkit
