#include "analyzer/rules/engine/divergence.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/launch.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/uniformity.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/rules/engine/analyses.hpp"

namespace ptxkit::rules {

using flow::BlockId;
using flow::Uniformity;

namespace {

constexpr uint32_t kUsualThreads = 256;

constexpr size_t kMaxPairs = 1'000'000;
constexpr int64_t kIterationsTried = 4;

// The blocks whose branch decides whether control comes to `block`: it post-dominates one way out of them, not them.
std::vector<BlockId> controllers(Analyses& analyses, BlockId block, const std::vector<BlockId>& branches) {
  std::vector<BlockId> found;
  const auto& tree = analyses.post_dominators();
  for (const BlockId branch : branches) {
    if (branch != block && tree.dominates(block, branch)) continue;
    const auto successors = analyses.graph().successors(branch);
    if (std::any_of(successors.begin(), successors.end(), [&](BlockId next) { return tree.dominates(block, next); }))
      found.push_back(branch);
  }
  return found;
}

// Whether a thread that goes on from `start` may end without passing a whole-CTA barrier, may come back to `joins`
// without one, and whether it surely passes one before `joins`.
struct OtherPath {
  bool ends_without = false;
  bool ends_by_trap_only = true;  // which ends the whole grid: nobody is left to wait
  bool rejoins_without = false;
  std::set<BlockId> waits_in;  // the blocks with the first barriers on it
};

OtherPath other_path(Analyses& analyses, BlockId start, BlockId joins, const std::vector<bool>& has_barrier) {
  OtherPath way;
  const flow::Graph& graph = analyses.graph();
  if (start == joins) {
    way.rejoins_without = true;
    return way;
  }
  std::vector<bool> seen(graph.size(), false);
  std::vector<BlockId> work{start};
  while (!work.empty()) {
    const BlockId block = work.back();
    work.pop_back();
    if (seen[block]) continue;
    seen[block] = true;
    if (has_barrier[block]) {
      way.waits_in.insert(block);
      continue;
    }
    if (graph.block(block).exits || graph.block(block).falls_through_end) {
      way.ends_without = true;
      if (graph.function().instructions[graph.last(block)].op != ptx::Op::trap) way.ends_by_trap_only = false;
    }
    for (const BlockId next : graph.successors(block)) {
      if (next == joins)
        way.rejoins_without = true;
      else
        work.push_back(next);
    }
  }
  return way;
}

}  // namespace

std::optional<SplitThreads> find_split(Context& context, flow::ValueId predicate, ptx::InstructionId instruction) {
  Analyses& analyses = context.analyses();
  flow::Forms& forms = analyses.forms();
  const flow::LaunchShape& shape = analyses.shape();
  const BlockId block = analyses.graph().block_of(instruction);
  const auto conditions = analyses.conditions().of(block);
  const flow::LoopId inner = analyses.loops().innermost(block);
  // Threads of the launch that is promised, or else of one row of the commonest size: a test that only a larger block
  // fails is as it should be where the host knows better.
  const uint32_t nx = shape.is_exact ? shape.threads[0] : std::min(shape.max_threads, kUsualThreads);
  const uint32_t ny = shape.is_exact ? shape.threads[1] : 1, nz = shape.is_exact ? shape.threads[2] : 1;
  std::vector<flow::Thread> threads;
  for (uint32_t n = 0; n < std::min(nx * ny * nz, 1024u); ++n) {
    // Of block (0, 0, 0), which every grid has.
    flow::Thread thread{.tid = {n % nx, n / nx % ny, n / (nx * ny)}, .nctaid = {1, 1, 1}};
    if (shape.is_exact) std::copy_n(shape.threads, 3, thread.ntid);
    threads.push_back(thread);
  }
  for (int64_t k = 0; k < (inner == flow::kNone ? 1 : kIterationsTried); ++k) {
    std::optional<flow::Thread> is_true, is_false;
    bool certain = shape.is_exact;
    auto iterations = flow::first_iterations(analyses.loops(), block);
    if (inner != flow::kNone) iterations[inner] = k;
    flow::Evaluator evaluator(forms, threads, std::move(iterations));
    const flow::Column& values = evaluator.column(predicate);
    for (uint32_t n = 0; n < threads.size() && !(is_true && is_false); ++n) {
      const flow::Thread& thread = threads[n];
      const auto value = values[n];
      if (!value) return std::nullopt;
      bool gets_here = true;
      for (const flow::Condition& condition : conditions) {
        const auto holds = evaluator.column(condition.predicate)[n];
        if (holds && (*holds != 0) != condition.expected) gets_here = false;
        if (holds) continue;
        certain = false;
        // Some threads may not get here at all.
        if (analyses.uniformity().of(condition.predicate) > Uniformity::loaded) return std::nullopt;
      }
      if (!gets_here) continue;
      auto& slot = *value ? is_true : is_false;
      if (!slot) slot = thread;
    }
    if (!is_true || !is_false) continue;
    SplitThreads split{*is_true, *is_false, std::nullopt, Tier::proved, {}};
    if (inner != flow::kNone) split.iteration = k;
    if (k > 0) certain = false;
    if (!certain) {
      split.tier = Tier::likely;
      if (!shape.is_exact) {
        const uint32_t needed = std::max(is_true->tid[0], is_false->tid[0]) + 1;
        split.assumptions.push_back(fmt::format("the block has at least {} threads in x", needed));
      }
      if (!conditions.empty()) split.assumptions.push_back("control reaches the test");
      if (k > 0) split.assumptions.push_back(fmt::format("the loop reaches iteration {}", k));
    }
    return split;
  }
  return std::nullopt;
}

GuardedBarriers guarded_barriers(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Graph& graph = analyses.graph();
  const ptx::Function& function = context.function();
  const auto& uniformity = analyses.uniformity();
  GuardedBarriers result;
  std::vector<bool> has_barrier(graph.size(), false);
  std::vector<ptx::InstructionId> barriers;
  std::vector<BlockId> branches;
  for (BlockId block = 0; block < graph.size(); ++block) {
    if (!graph.is_reachable(block)) continue;
    for (ptx::InstructionId id = graph.block(block).first; id < graph.block(block).end; ++id)
      if (ptx::is_whole_cta_barrier(function, function.instructions[id])) {
        barriers.push_back(id);
        has_barrier[block] = true;
      }
    if (graph.block(block).successor_count + graph.block(block).exits > 1) branches.push_back(block);
  }
  result.barrier_count = barriers.size();
  if (barriers.size() * branches.size() > kMaxPairs) {
    result.complete = false;
    return result;
  }
  for (const ptx::InstructionId barrier : barriers) {
    std::set<BlockId> seen;
    std::vector<std::pair<BlockId, BlockId>> work;  // {what depends, branch it depends on}
    for (const BlockId branch : controllers(analyses, graph.block_of(barrier), branches))
      work.emplace_back(graph.block_of(barrier), branch);
    size_t steps = 0;
    while (!work.empty()) {
      const auto [target, branch] = work.back();
      work.pop_back();
      if (!seen.insert(branch).second) continue;
      if (++steps * branches.size() > kMaxPairs) {
        result.complete = false;
        break;
      }
      for (const BlockId outer : controllers(analyses, branch, branches)) work.emplace_back(branch, outer);
      if (uniformity.branch(branch) == Uniformity::uniform) continue;
      GuardedBarrier guarded;
      guarded.barrier = barrier;
      guarded.branch = graph.last(branch);
      guarded.is_divergent = true;
      const auto successors = graph.successors(branch);
      const auto& tree = analyses.post_dominators();
      BlockId own = flow::kNone, other = flow::kNone;
      for (size_t i = 0; i < successors.size(); ++i) {
        if (tree.dominates(target, successors[i])) {
          guarded.on_taken_side = i == 0 && function.instructions[guarded.branch].op == ptx::Op::bra;
          own = successors[i];
        } else {
          other = successors[i];
        }
      }
      const flow::LoopId loop = analyses.loops().innermost(branch);
      guarded.leaves_loop = loop != flow::kNone && other != flow::kNone &&
                            analyses.loops().contains(loop, graph.block_of(barrier)) &&
                            !analyses.loops().contains(loop, other);
      if (other == flow::kNone) {
        guarded.other = GuardedBarrier::OtherSide::leaves;
      } else {
        const OtherPath way = other_path(analyses, other, tree.parent(branch), has_barrier);
        // Both ways come to one and the same barrier next, but for a trap on one of them.
        if (way.waits_in.size() == 1 && way.ends_by_trap_only && !way.rejoins_without) {
          const OtherPath this_way = other_path(analyses, own, tree.parent(branch), has_barrier);
          if (this_way.ends_by_trap_only && !this_way.rejoins_without && this_way.waits_in == way.waits_in) continue;
        }
        guarded.other = way.rejoins_without ? GuardedBarrier::OtherSide::rejoins
                        : way.ends_without  ? GuardedBarrier::OtherSide::leaves
                                            : GuardedBarrier::OtherSide::other_barrier;
      }
      result.found.push_back(guarded);
    }
  }
  return result;
}

}  // namespace ptxkit::rules
