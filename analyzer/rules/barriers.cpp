// Rules about who reaches a barrier.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/evaluate.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/flow/step_budget.hpp"
#include "analyzer/flow/uniformity.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/divergence.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "support/plural.hpp"

namespace ptxkit::rules {

using OtherSide = GuardedBarrier::OtherSide;

namespace {

std::string name_of(const flow::Thread& thread) {
  return fmt::format("({}, {}, {})", thread.tid[0], thread.tid[1], thread.tid[2]);
}

Witness witness_of(const SplitThreads& split) {
  Witness witness;
  for (unsigned d = 0; d < 3; ++d) {
    witness.tid[d] = split.comes.tid[d];
    witness.other_tid[d] = split.stays.tid[d];
  }
  if (split.iteration) witness.iteration = static_cast<uint64_t>(*split.iteration);
  return witness;
}

bool same_warp(const flow::Thread& a, const flow::Thread& b) {
  return a.tid[1] == b.tid[1] && a.tid[2] == b.tid[2] && a.tid[0] / 32 == b.tid[0] / 32;
}

// One rule's share of the guarded barriers: those that `wanted` picks. A finding for each that has two threads as
// witness; the others leave the rule undecided.
template <class Wanted>
RuleResult judge_barriers(Context& context, Wanted&& wanted, Severity severity, std::string_view outcome,
                          std::string_view remedy) {
  Analyses& analyses = context.analyses();
  const GuardedBarriers& guarded = analyses.guarded_barriers();
  if (guarded.barrier_count == 0) return not_applicable("the kernel has no barrier of the whole CTA");
  const ptx::Function& function = context.function();
  std::vector<Finding> findings;
  std::string open;
  flow::StepBudget steps_left(kMaxSplitSteps);
  for (const GuardedBarrier& barrier : guarded.found) {
    if (!wanted(barrier)) continue;
    const auto split = find_split_at_barrier(context, barrier, guarded.has_barrier, steps_left);
    if (steps_left.is_spent()) break;
    if (!split || (barrier.other == OtherSide::other_barrier && !same_warp(split->comes, split->stays))) {
      if (open.empty() &&
          analyses.uniformity().branch(analyses.graph().block_of(barrier.branch)) != flow::Uniformity::uniform)
        open =
            fmt::format("whether all threads agree on the branch in line {} before the barrier in line {} is not known",
                        line_of(context, barrier.branch), line_of(context, barrier.barrier));
      continue;
    }
    Finding finding = finding_at(context, barrier.barrier, severity, split->tier, "", std::string(remedy));
    finding.witness = witness_of(*split);
    finding.message = fmt::format("thread {} waits at this barrier, thread {} {}", name_of(split->comes),
                                  name_of(split->stays), outcome);
    finding.path.push_back({function.instructions[barrier.branch].at, "the threads part here"});
    finding.assumptions = split->assumptions;
    findings.push_back(std::move(finding));
  }
  if (findings.empty() && !guarded.complete)
    return undecided("not decided: budget: the kernel has too many branches and barriers for all pairs");
  if (findings.empty() && steps_left.is_spent())
    return undecided("not decided: budget: the kernel has too many branches before its barriers to follow all threads");
  if (findings.empty() && !open.empty()) return undecided(open);
  return conclude(std::move(findings), plural(guarded.barrier_count, "barrier") + " over which no such branch decides");
}

}  // namespace

// F038. Where the other way ends the thread without a barrier, the matter is F037's.
RuleResult divergent_barrier(Context& context) {
  return judge_barriers(
      context, [](const GuardedBarrier& barrier) { return barrier.other != OtherSide::leaves; }, Severity::critical,
      "does not", "move the barrier out of the branch, or make the condition the same for the whole block");
}

// F037. Without a known block this is left open: kernels cut off the rest of a grid by leaving early, and only the
// launch says whether a block is cut in two.
RuleResult barrier_not_reached(Context& context) {
  const bool is_exact = context.analyses().shape().is_exact;
  RuleResult result = judge_barriers(
      context, [](const GuardedBarrier& barrier) { return barrier.other == OtherSide::leaves && !barrier.leaves_loop; },
      Severity::high, "has ended", "let every thread reach the barrier, and skip the work instead");
  if (result.verdict != Verdict::refuted || is_exact) return result;
  return undecided(fmt::format("line {} is reached only by threads that did not leave; the block's shape is not known",
                               line_of(context, result.findings.front().instruction)));
}

// F045. F038 for the branch that leaves a loop: the threads part after different numbers of iterations.
RuleResult barrier_in_divergent_loop(Context& context) {
  return judge_barriers(
      context, [](const GuardedBarrier& barrier) { return barrier.leaves_loop; }, Severity::high, "has left the loop",
      "run the loop equally often in every thread, and skip the work instead");
}

// F041. The guard of the barrier itself.
RuleResult predicated_barrier(Context& context) {
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  std::vector<Finding> findings;
  std::string open;
  bool any = false;
  for (const flow::BlockId block : analyses.graph().reverse_postorder())
    for (ptx::InstructionId id = analyses.graph().block(block).first; id < analyses.graph().block(block).end; ++id) {
      const flow::ValueId predicate = analyses.ssa().guard(id);
      if (predicate == flow::kNone || !ptx::is_whole_cta_barrier(function, function.instructions[id])) continue;
      any = true;
      if (analyses.uniformity().of(predicate) == flow::Uniformity::uniform) continue;
      const auto split = find_split(context, predicate, id, function.instructions[id].guard.negated);
      if (!split) {
        if (open.empty())
          open = fmt::format("whether all threads agree on the guard in line {} is not known", line_of(context, id));
        continue;
      }
      Finding finding = finding_at(context, id, Severity::high, split->tier,
                                   fmt::format("thread {} waits at this barrier, thread {} skips it",
                                               name_of(split->comes), name_of(split->stays)),
                                   "take the guard off the barrier");
      finding.witness = witness_of(*split);
      finding.assumptions = split->assumptions;
      findings.push_back(std::move(finding));
    }
  if (!any) return not_applicable("no barrier of the whole CTA has a guard");
  if (findings.empty() && !open.empty()) return undecided(open);
  return conclude(std::move(findings), "every guard of a barrier is the same for the whole block");
}

}  // namespace ptxkit::rules
