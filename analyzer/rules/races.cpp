// Rules about two threads that touch the same byte, one of them writing, with no order between them: F036, F050, F058,
// F102.
#include <fmt/format.h>

#include "analyzer/flow/graph.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/race_search.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/engine/walk.hpp"

namespace ptxkit::rules {

using ptx::AccessKind;
using ptx::Op;

namespace {

// Where the kernel waits for another thread or leaves what the search follows; kNone if nowhere.
ptx::InstructionId other_order(Context& context) {
  Analyses& analyses = context.analyses();
  for (const ptx::Access& access : analyses.accesses())
    if (access.kind != AccessKind::store && !access.is_plain && is_global(access) &&
        analyses.loops().innermost(analyses.graph().block_of(access.instruction)) != flow::kNone &&
        decides_branch(context, access.instruction, true))
      return access.instruction;
  ptx::InstructionId found = ptx::kNone;
  for_each_instruction(context, [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
    const bool is_cluster =
        instruction.op == Op::barrier &&
        ptx::facts_of(context.function(), instruction).barrier.level == ptx::Barrier::Level::cluster;
    if (found == ptx::kNone && (instruction.op == Op::call || is_cluster)) found = id;
  });
  return found;
}

// Threads of one block and threads of two blocks together.
RuleResult search_both(Context& context, RacePairs pairs) {
  RuleResult within = search_races(context, pairs);
  if (within.verdict == Verdict::refuted) return within;
  // The kernel has no such atomics, or is for one thread.
  if (within.verdict == Verdict::not_applicable && pairs == RacePairs::mixed) return within;
  RuleResult between = search_block_races(context, pairs);
  const ptx::InstructionId order = other_order(context);
  if (between.verdict == Verdict::refuted && order != ptx::kNone)
    return undecided(
        fmt::format("the order that line {} makes between threads is not followed", line_of(context, order)));
  if (between.verdict == Verdict::refuted) return between;
  if (within.verdict == Verdict::undecided || between.verdict == Verdict::not_applicable) return within;
  return between;
}

}  // namespace

RuleResult missing_barrier(Context& context) { return search_races(context, RacePairs::shared); }

// F050. Before sm_70 the lanes of a warp ran in step, and volatile was enough to pass values between them.
RuleResult implicit_warp_sync(Context& context) {
  if (context.module.target_sm != 0 && context.module.target_sm < 70)
    return not_applicable("the warps of the target run in step");
  return search_races(context, RacePairs::lockstep);
}

// F058. An atomic is atomic only towards other atomics.
RuleResult mixed_atomicity(Context& context) { return search_both(context, RacePairs::mixed); }

// F102. A kernel that waits for another thread in a loop is left undecided.
RuleResult global_race(Context& context) {
  const ptx::InstructionId order = other_order(context);
  if (order != ptx::kNone)
    return undecided(
        fmt::format("the order that line {} makes between threads is not followed", line_of(context, order)));
  return search_both(context, RacePairs::global);
}

}  // namespace ptxkit::rules
