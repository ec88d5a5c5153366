// Does the emulator see what a rule says? A finding of the analyzer, run.
#pragma once

#include <string>
#include <string_view>

#include "analyzer/flow/launch.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/rule.hpp"

namespace ptxkit {

struct Replayed {
  // `unseen`: no launch showed the fault at that place, which disproves nothing: other inputs may.
  enum class Outcome { confirmed, unseen, not_run } outcome = Outcome::not_run;
  std::string what;  // the fault with thread and block, or why not; of `unseen` the fault that came first, if one did
};

// Runs `kernel` with all checks on until a fault of `rule` appears at the line of `finding`: first on a launch made of
// its witness (a block that has the witness's threads, buffers that hold what it loads), where it has one, then on
// generated launches. F021, F081 and F082 are seen as the misaligned access (F051) that they are. `facts` may be null;
// what they promise goes before what the witness says. Requires: the finding has an instruction.
Replayed replay(const ptx::Module& module, ptx::FunctionId kernel, const flow::LaunchFacts* facts,
                std::string_view rule, const rules::Finding& finding);

}  // namespace ptxkit
