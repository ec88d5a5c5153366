#include "analyzer/rules/engine/divergence.hpp"

#include <algorithm>
#include <functional>
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

namespace {

// Whether thread number `n` of those that are evaluated will do for a side of the split: `value` is what it computes.
using SplitFilter = std::function<bool(flow::Evaluator& evaluator, size_t n, bool value)>;

// As find_split(), by the threads that `filter` lets through, if it is not empty; `comes` computes `value_of_comes`.
std::optional<SplitThreads> find_filtered_split(Context& context, flow::ValueId predicate,
                                                ptx::InstructionId instruction, bool value_of_comes,
                                                const SplitFilter& filter) {
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
    std::optional<flow::Thread> comes, stays;
    bool certain = shape.is_exact;
    auto iterations = flow::first_iterations(analyses.loops(), block);
    if (inner != flow::kNone) iterations[inner] = k;
    flow::Evaluator evaluator(forms, threads, std::move(iterations));
    const flow::Column values = evaluator.column(predicate);
    for (uint32_t n = 0; n < threads.size() && !(comes && stays); ++n) {
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
      auto& slot = (*value != 0) == value_of_comes ? comes : stays;
      if (!slot && (!filter || filter(evaluator, n, *value != 0))) slot = thread;
    }
    if (!comes || !stays) continue;
    SplitThreads split{*comes, *stays, std::nullopt, Tier::proved, {}};
    if (inner != flow::kNone) split.iteration = k;
    if (k > 0) certain = false;
    if (!certain) {
      split.tier = Tier::likely;
      if (!shape.is_exact) {
        const uint32_t needed = std::max(comes->tid[0], stays->tid[0]) + 1;
        split.assumptions.push_back(fmt::format("the block has at least {} threads in x", needed));
      }
      if (!conditions.empty()) split.assumptions.push_back("control reaches the test");
      if (k > 0) split.assumptions.push_back(fmt::format("the loop reaches iteration {}", k));
    }
    return split;
  }
  return std::nullopt;
}

// The blocks that a thread may come to.
struct Reached {
  std::vector<bool> blocks;
  bool ends = false;  // the thread may end
};

// Follows thread number `n` of those that are evaluated from `branch` on, by the tests that are known for it. `around`:
// the loops around the branch, whose next turn is not followed. `barriers`, if not null: blocks that are not passed.
Reached follow(Analyses& analyses, flow::Evaluator& evaluator, size_t n, BlockId branch,
               const std::vector<flow::LoopId>& around, const std::vector<bool>* barriers) {
  const flow::Graph& graph = analyses.graph();
  const flow::Loops& loops = analyses.loops();
  Reached reached{std::vector<bool>(graph.size(), false)};
  std::vector<BlockId> work{branch};
  while (!work.empty()) {
    const BlockId block = work.back();
    work.pop_back();
    if (barriers != nullptr && block != branch && (*barriers)[block]) continue;
    const ptx::InstructionId last = graph.last(block);
    const ptx::Instruction& instruction = graph.function().instructions[last];
    const bool is_branch = instruction.op == ptx::Op::bra, exits = graph.block(block).exits;
    const flow::LoopId inner = loops.innermost(block);
    const bool is_known_turn = inner == flow::kNone || std::ranges::find(around, inner) != around.end();
    const flow::ValueId predicate = analyses.ssa().guard(last);
    std::optional<bool> runs;  // the last instruction
    if ((is_branch || exits) && predicate != flow::kNone && is_known_turn) {
      if (const auto value = evaluator.column(predicate)[n]) runs = (*value != 0) != instruction.guard.negated;
    }
    const bool ends = graph.block(block).falls_through_end || (exits && runs.value_or(true));
    reached.ends |= ends;
    const auto successors = graph.successors(block);
    for (size_t i = 0; i < successors.size(); ++i) {
      const BlockId next = successors[i];
      if (runs && *runs != (is_branch && i == 0)) continue;
      if (reached.blocks[next] ||
          std::ranges::any_of(around, [&](flow::LoopId loop) { return loops.loop(loop).header == next; }))
        continue;
      reached.blocks[next] = true;
      work.push_back(next);
    }
  }
  return reached;
}

}  // namespace

std::optional<SplitThreads> find_split(Context& context, flow::ValueId predicate, ptx::InstructionId instruction,
                                       bool is_negated) {
  return find_filtered_split(context, predicate, instruction, !is_negated, {});
}

std::optional<SplitThreads> find_split_at_barrier(Context& context, const GuardedBarrier& barrier) {
  Analyses& analyses = context.analyses();
  const flow::Graph& graph = analyses.graph();
  const ptx::Function& function = context.function();
  const flow::ValueId predicate = analyses.ssa().guard(barrier.branch);
  if (predicate == flow::kNone) return std::nullopt;
  const bool is_negated = function.instructions[barrier.branch].guard.negated;
  const BlockId branch = graph.block_of(barrier.branch), goal = graph.block_of(barrier.barrier);
  const bool true_comes = barrier.on_taken_side != is_negated;
  if (barrier.leaves_loop || goal == branch)
    return find_filtered_split(context, predicate, barrier.branch, true_comes, {});
  std::vector<flow::LoopId> around;
  for (flow::LoopId loop = 0; loop < analyses.loops().all().size(); ++loop)
    if (analyses.loops().contains(loop, branch)) around.push_back(loop);
  std::vector<bool> has_barrier(graph.size(), false);
  for (BlockId block = 0; block < graph.size(); ++block)
    for (ptx::InstructionId id = graph.block(block).first; id < graph.block(block).end; ++id)
      if (ptx::is_whole_cta_barrier(function, function.instructions[id])) has_barrier[block] = true;
  const BlockId join = analyses.post_dominators().parent(branch);
  const auto will_do = [&](flow::Evaluator& evaluator, size_t n, bool is_to_come) {
    if (follow(analyses, evaluator, n, branch, around, nullptr).blocks[goal] != is_to_come) return false;
    if (!is_to_come && barrier.other != GuardedBarrier::OtherSide::other_barrier) {
      const Reached missing = follow(analyses, evaluator, n, branch, around, &has_barrier);
      const bool rejoins = join < missing.blocks.size() && missing.blocks[join];
      if (!missing.ends && !(barrier.other == GuardedBarrier::OtherSide::rejoins && rejoins)) return false;
    }
    return branch == 0 || follow(analyses, evaluator, n, 0, {}, nullptr).blocks[branch];
  };
  bool has_refused = false;
  const auto find = [&](bool value_of_comes) {
    return find_filtered_split(context, predicate, barrier.branch, value_of_comes,
                               [&](flow::Evaluator& evaluator, size_t n, bool value) {
                                 const bool good = will_do(evaluator, n, value == value_of_comes);
                                 has_refused |= !good;
                                 return good;
                               });
  };
  auto split = find(true_comes);
  return !split && has_refused ? find(!true_comes) : split;
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
