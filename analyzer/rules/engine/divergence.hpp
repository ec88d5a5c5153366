// Finds branches that keep some threads of a CTA from a barrier at which the others wait, with two threads as witness.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/flow/evaluate.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/flow/step_budget.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

// Two threads that both reach the test of a predicate and compute different values for it.
struct SplitThreads {
  flow::Thread comes, stays;  // to the instruction that the predicate guards, or to the barrier behind the branch
  std::optional<int64_t> iteration;  // of the innermost loop around the test, where it matters
  Tier tier = Tier::proved;
  std::vector<std::string> assumptions;
};

// Searches for such threads by evaluating `predicate`, tested at `instruction`, for the threads of a block: `comes`
// executes the instruction, whose guard is `is_negated` or not. Returns nothing where the predicate depends on more
// than a thread's indices, or where all threads agree.
std::optional<SplitThreads> find_split(Context& context, flow::ValueId predicate, ptx::InstructionId instruction,
                                       bool is_negated);

// A barrier that is control-dependent on a branch.
struct GuardedBarrier {
  enum class OtherSide : uint8_t {
    rejoins,        // the other side rejoins without a barrier
    leaves,         // the other side ends the thread without a barrier
    other_barrier,  // the other side always passes another barrier
  } other = OtherSide::rejoins;
  ptx::InstructionId barrier = ptx::kNone;
  ptx::InstructionId branch = ptx::kNone;
  bool on_taken_side = false;  // the barrier is on the side of the branch target
  bool leaves_loop = false;    // the branch is the exit of a loop around the barrier
  bool is_divergent = false;   // the uniformity analysis does not prove the branch uniform
};

// All whole-CTA barriers, each with the non-uniform branches that it depends on, in program order. `complete` is false
// where the kernel is too large to examine all pairs.
struct GuardedBarriers {
  std::vector<GuardedBarrier> found;
  std::vector<bool> has_barrier;  // by block, whether reachable or not
  size_t barrier_count = 0;
  bool complete = true;
};
GuardedBarriers guarded_barriers(Context& context);

// Two threads that part at the barrier's branch. `comes` may come to the barrier, `stays` cannot and misses it as the
// barrier's OtherSide says, as far as the tests before and behind the branch are known for a thread. By those tests it
// may be threads of the branch's other side that come. What the next turn of a loop around the branch does is left out.
// `has_barrier` is that of GuardedBarriers. The search takes its steps off `steps_left`; where that becomes 0 it has
// found nothing, and that does not mean that there is nothing.
std::optional<SplitThreads> find_split_at_barrier(Context& context, const GuardedBarrier& barrier,
                                                  const std::vector<bool>& has_barrier, flow::StepBudget& steps_left);

inline constexpr uint64_t kMaxSplitSteps = 150'000'000;  // for the searches of one rule in a kernel

}  // namespace ptxkit::rules
