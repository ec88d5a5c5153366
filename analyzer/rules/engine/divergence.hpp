// Branches that keep some threads of a CTA from a barrier that the others wait at, with two threads as witness.
#pragma once

#include <optional>
#include <vector>

#include "analyzer/flow/evaluate.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

// Two threads for which a predicate has different values, both of which get to where it is tested.
struct SplitThreads {
  flow::Thread true_thread, false_thread;
  std::optional<int64_t> iteration;  // of the innermost loop around the test, where it matters
  Tier tier = Tier::proved;
  std::vector<std::string> assumptions;
};

// Looks for such threads by evaluating `predicate`, tested at `instruction`, for the threads of a block. Nothing where
// the predicate depends on what threads cannot know from their place, or where all agree.
std::optional<SplitThreads> find_split(Context& context, flow::ValueId predicate, ptx::InstructionId instruction);

// A barrier that is control-dependent on a branch.
struct GuardedBarrier {
  enum class Other : uint8_t {
    rejoins,        // the other way comes back without a barrier
    leaves,         // the other way ends the thread without a barrier
    other_barrier,  // the other way surely passes another barrier
  } other = Other::rejoins;
  ptx::InstructionId barrier = ptx::kNone;
  ptx::InstructionId branch = ptx::kNone;
  bool on_taken_side = false;  // the barrier is where the branch jumps to
  bool leaves_loop = false;    // the branch is the exit of a loop around the barrier
  bool is_divergent = false;   // uniformity analysis does not show the branch uniform
};

// Every whole-CTA barrier with every branch that it depends on and that is not uniform, in program order. `complete` is
// false where the kernel is too large for all pairs.
struct GuardedBarriers {
  std::vector<GuardedBarrier> found;
  size_t barrier_count = 0;
  bool complete = true;
};
GuardedBarriers guarded_barriers(Context& context);

}  // namespace ptxkit::rules
