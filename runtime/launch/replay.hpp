// Replays a finding of the analyzer: tests whether the emulator observes it.
#pragma once

#include <string_view>

#include "analyzer/flow/launch.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit {

// Runs `kernel` until a fault of `rule` occurs at the line of `finding`: on generated launches, and on the same
// launches with the finding's witness, if there is one (a block that contains its threads, buffers with the values that
// it loads). A buffer of generated size grows if an access leaves it, unless the rule is about bounds. Each launch runs
// with all checks and then, to look past another fault, with the check of the rule only, bounds and alignment in that
// line only. F021, F081 and F082 are observed as the misaligned access (F051) that they cause. `facts` may be null;
// they take precedence over the witness. Requires: the finding has an instruction.
rules::Replay replay(const ptx::Module& module, ptx::FunctionId kernel, const flow::LaunchFacts* facts,
                     std::string_view rule, const rules::Finding& finding);

}  // namespace ptxkit
