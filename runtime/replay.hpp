// Does the emulator see what a rule says? A finding of the analyzer, run.
#pragma once

#include <string>
#include <string_view>

#include "analyzer/flow/launch.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit {

struct Replayed {
  // `unseen`: no generated launch showed the fault at that place, which disproves nothing: other inputs may.
  enum class Outcome { confirmed, unseen, not_run } outcome = Outcome::not_run;
  std::string what;  // the fault with thread and block, or why not
};

// Runs `kernel` on generated launches, all checks on, until a fault of `rule` appears at `line` of the PTX. F021, F081
// and F082 are seen as the misaligned access (F051) that they are. `facts` may be null.
Replayed replay(const ptx::Module& module, ptx::FunctionId kernel, const flow::LaunchFacts* facts,
                std::string_view rule, uint32_t line);

}  // namespace ptxkit
