#include "analyzer/rules/engine/divergence.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/launch.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/step_budget.hpp"
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

// Takes the values that an evaluator computed in its life off `steps_left`, once for each of its threads.
class EvaluationCost {
 public:
  EvaluationCost(const flow::Evaluator& evaluator, flow::StepBudget& steps_left)
      : evaluator_(&evaluator), steps_left_(&steps_left) {}
  EvaluationCost(const EvaluationCost&) = delete;
  EvaluationCost& operator=(const EvaluationCost&) = delete;
  ~EvaluationCost() { steps_left_->take(evaluator_->value_count() * evaluator_->threads().size() / 2); }

 private:
  const flow::Evaluator* evaluator_;
  flow::StepBudget* steps_left_;
};

// Where a thread that goes on from a block may come without passing a whole-CTA barrier.
struct OtherPath {
  bool ends_without = false;
  bool ends_by_trap_only = true;  // which ends the whole grid: nobody is left to wait
  bool rejoins_without = false;
  std::vector<BlockId> waits_in = {};  // the blocks with the first barriers on the way, two at most

  bool waits_in_one() const { return waits_in.size() == 1; }
};

// Finds the branches that barriers depend on. Kernels with many branches and barriers have more of these pairs than
// can be walked, so all walks together have kMaxSteps.
class GuardSearch {
 public:
  explicit GuardSearch(Analyses& analyses)
      : analyses_(&analyses), graph_(&analyses.graph()), tree_(&analyses.post_dominators()) {}

  GuardedBarriers run();

 private:
  static constexpr uint64_t kMaxSteps = 30'000'000;  // a block or an edge each

  bool take(uint64_t steps) {
    steps_left_.take(steps);
    return !steps_left_.is_spent();
  }
  void find_controllers();
  const OtherPath& other_path(BlockId start, BlockId joins);
  void find(ptx::InstructionId barrier);
  std::optional<GuardedBarrier> judge(ptx::InstructionId barrier, BlockId target, BlockId branch);

  Analyses* analyses_;
  const flow::Graph* graph_;
  const flow::DominatorTree* tree_;
  flow::StepBudget steps_left_{kMaxSteps};
  std::vector<BlockId> branches_;
  // By block: the branches that decide whether control comes to it.
  std::vector<std::vector<BlockId>> controllers_;
  std::map<std::pair<BlockId, BlockId>, OtherPath> paths_;  // by start and join
  std::vector<uint32_t> seen_;                              // by block: the last walk that came there
  uint32_t walk_ = 0;
  GuardedBarriers result_;
};

// A block depends on a branch if it post-dominates a way out of it, and not the branch: it stands on the path up the
// tree from that way to the parent of the branch.
void GuardSearch::find_controllers() {
  controllers_.resize(graph_->size());
  for (const BlockId branch : branches_) {
    for (const BlockId way : graph_->successors(branch)) {
      for (BlockId block = way; block < graph_->size() && block != tree_->parent(branch);
           block = tree_->parent(block)) {
        if (!take(1)) return;
        if (controllers_[block].empty() || controllers_[block].back() != branch) controllers_[block].push_back(branch);
      }
    }
  }
}

const OtherPath& GuardSearch::other_path(BlockId start, BlockId joins) {
  const auto [place, is_new] = paths_.try_emplace({start, joins});
  OtherPath& way = place->second;
  if (!is_new) return way;
  if (start == joins) {
    way.rejoins_without = true;
    return way;
  }
  ++walk_;
  std::vector<BlockId> work{start};
  while (!work.empty()) {
    const BlockId block = work.back();
    work.pop_back();
    if (seen_[block] == walk_) continue;
    seen_[block] = walk_;
    if (!take(1 + graph_->block(block).successor_count)) break;
    if (result_.has_barrier[block]) {
      if (way.waits_in.size() < 2) way.waits_in.push_back(block);
      continue;
    }
    if (graph_->block(block).exits || graph_->block(block).falls_through_end) {
      way.ends_without = true;
      if (graph_->function().instructions[graph_->last(block)].op != ptx::Op::trap) way.ends_by_trap_only = false;
    }
    for (const BlockId next : graph_->successors(block)) {
      if (next == joins)
        way.rejoins_without = true;
      else if (seen_[next] != walk_)
        work.push_back(next);
    }
  }
  return way;
}

std::optional<GuardedBarrier> GuardSearch::judge(ptx::InstructionId barrier, BlockId target, BlockId branch) {
  GuardedBarrier guarded;
  guarded.barrier = barrier;
  guarded.branch = graph_->last(branch);
  guarded.is_divergent = true;
  const auto successors = graph_->successors(branch);
  if (!take(successors.size())) return std::nullopt;
  BlockId own = flow::kNone, other = flow::kNone;
  for (size_t i = 0; i < successors.size(); ++i) {
    if (tree_->dominates(target, successors[i])) {
      guarded.on_taken_side = i == 0 && graph_->function().instructions[guarded.branch].op == ptx::Op::bra;
      own = successors[i];
    } else {
      other = successors[i];
    }
  }
  const flow::Loops& loops = analyses_->loops();
  const flow::LoopId loop = loops.innermost(branch);
  guarded.leaves_loop = loop != flow::kNone && other != flow::kNone &&
                        loops.contains(loop, graph_->block_of(barrier)) && !loops.contains(loop, other);
  if (other == flow::kNone) {
    guarded.other = GuardedBarrier::OtherSide::leaves;
    return guarded;
  }
  const OtherPath& way = other_path(other, tree_->parent(branch));
  // Both ways come to one and the same barrier next, but for a trap on one of them.
  if (way.waits_in_one() && way.ends_by_trap_only && !way.rejoins_without) {
    const OtherPath& this_way = other_path(own, tree_->parent(branch));
    if (this_way.ends_by_trap_only && !this_way.rejoins_without && this_way.waits_in == way.waits_in)
      return std::nullopt;
  }
  guarded.other = way.rejoins_without ? GuardedBarrier::OtherSide::rejoins
                  : way.ends_without  ? GuardedBarrier::OtherSide::leaves
                                      : GuardedBarrier::OtherSide::other_barrier;
  return guarded;
}

void GuardSearch::find(ptx::InstructionId barrier) {
  const BlockId own = graph_->block_of(barrier);
  std::set<BlockId> seen;
  std::vector<std::pair<BlockId, BlockId>> work;  // {what depends, branch it depends on}
  for (const BlockId branch : controllers_[own]) work.emplace_back(own, branch);
  size_t steps = 0;
  while (!work.empty()) {
    const auto [target, branch] = work.back();
    work.pop_back();
    if (!take(1)) return;
    if (!seen.insert(branch).second) continue;
    if (++steps * branches_.size() > kMaxPairs) {
      result_.complete = false;
      return;
    }
    for (const BlockId outer : controllers_[branch]) work.emplace_back(branch, outer);
    if (analyses_->uniformity().branch(branch) == Uniformity::uniform) continue;
    const auto guarded = judge(barrier, target, branch);
    if (steps_left_.is_spent()) return;  // a walk that was cut short says nothing
    if (guarded) result_.found.push_back(*guarded);
  }
}

GuardedBarriers GuardSearch::run() {
  const ptx::Function& function = graph_->function();
  result_.has_barrier.assign(graph_->size(), false);
  seen_.assign(graph_->size(), 0);
  std::vector<ptx::InstructionId> barriers;
  for (BlockId block = 0; block < graph_->size(); ++block) {
    for (ptx::InstructionId id = graph_->block(block).first; id < graph_->block(block).end; ++id)
      if (ptx::is_whole_cta_barrier(function, function.instructions[id])) {
        if (graph_->is_reachable(block)) barriers.push_back(id);
        result_.has_barrier[block] = true;
      }
    if (graph_->is_reachable(block) && graph_->block(block).successor_count + graph_->block(block).exits > 1)
      branches_.push_back(block);
  }
  result_.barrier_count = barriers.size();
  if (barriers.size() * branches_.size() > kMaxPairs) {
    result_.complete = false;
    return std::move(result_);
  }
  if (!barriers.empty()) find_controllers();
  for (const ptx::InstructionId barrier : barriers) {
    if (steps_left_.is_spent()) break;
    find(barrier);
  }
  result_.complete = result_.complete && !steps_left_.is_spent();
  return std::move(result_);
}

// Whether thread number `n` of those that are evaluated will do for a side of the split: `value` is what it computes.
using SplitFilter = std::function<bool(flow::Evaluator& evaluator, size_t n, bool value)>;

// As find_split(), by the threads that `filter` lets through, if it is not empty; `comes` computes `value_of_comes`.
// Takes what the evaluation costs off `steps_left`, and gives up when nothing is left.
std::optional<SplitThreads> find_filtered_split(Context& context, flow::ValueId predicate,
                                                ptx::InstructionId instruction, bool value_of_comes,
                                                const SplitFilter& filter, flow::StepBudget& steps_left) {
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
  const uint32_t count = std::min(nx * ny * nz, 1024u);
  threads.reserve(count);
  for (uint32_t n = 0; n < count; ++n) {
    // Of block (0, 0, 0), which every grid has.
    flow::Thread thread{.tid = {n % nx, n / nx % ny, n / (nx * ny)}, .nctaid = {1, 1, 1}};
    if (shape.is_exact) std::copy_n(shape.threads, 3, thread.ntid);
    threads.push_back(thread);
  }
  for (int64_t k = 0; k < (inner == flow::kNone ? 1 : kIterationsTried) && !steps_left.is_spent(); ++k) {
    std::optional<flow::Thread> comes, stays;
    bool certain = shape.is_exact;
    auto iterations = flow::first_iterations(analyses.loops(), block);
    if (inner != flow::kNone) iterations[inner] = k;
    flow::Evaluator evaluator(forms, threads, std::move(iterations));
    const EvaluationCost cost(evaluator, steps_left);
    steps_left.take(4 * threads.size());  // for the evaluator itself
    const flow::Column values = evaluator.column(predicate);
    for (uint32_t n = 0; n < threads.size() && !(comes && stays); ++n) {
      steps_left.take(1 + conditions.size());
      if (steps_left.is_spent()) return std::nullopt;
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
    if (!comes || !stays || steps_left.is_spent()) continue;
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

// Follows thread number `n` of those that are evaluated from `branch` on, by the tests that are known for it. The next
// turn of the loops around `turn_of`, if not kNone, is not followed. `barriers`, if not null: blocks that are not
// passed. Takes the blocks off `steps_left`, and ends early when nothing is left.
Reached follow(Analyses& analyses, flow::Evaluator& evaluator, size_t n, BlockId branch, BlockId turn_of,
               const std::vector<bool>* barriers, flow::StepBudget& steps_left) {
  const flow::Graph& graph = analyses.graph();
  const flow::Loops& loops = analyses.loops();
  const auto is_around = [&](flow::LoopId loop) { return turn_of != flow::kNone && loops.contains(loop, turn_of); };
  Reached reached{std::vector<bool>(graph.size(), false)};
  std::vector<BlockId> work{branch};
  while (!work.empty() && !steps_left.is_spent()) {
    const BlockId block = work.back();
    work.pop_back();
    steps_left.take(1 + graph.block(block).successor_count);
    if (barriers != nullptr && block != branch && (*barriers)[block]) continue;
    const ptx::InstructionId last = graph.last(block);
    const ptx::Instruction& instruction = graph.function().instructions[last];
    const bool is_branch = instruction.op == ptx::Op::bra, exits = graph.block(block).exits;
    const flow::LoopId inner = loops.innermost(block);
    const bool is_known_turn = inner == flow::kNone || is_around(inner);
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
      const flow::LoopId loop = loops.innermost(next);
      const bool is_next_turn = loop != flow::kNone && loops.loop(loop).header == next && is_around(loop);
      if (reached.blocks[next] || is_next_turn) continue;
      reached.blocks[next] = true;
      work.push_back(next);
    }
  }
  return reached;
}

}  // namespace

std::optional<SplitThreads> find_split(Context& context, flow::ValueId predicate, ptx::InstructionId instruction,
                                       bool is_negated) {
  flow::StepBudget steps_left(kMaxSplitSteps);
  return find_filtered_split(context, predicate, instruction, !is_negated, {}, steps_left);
}

std::optional<SplitThreads> find_split_at_barrier(Context& context, const GuardedBarrier& barrier,
                                                  const std::vector<bool>& has_barrier, flow::StepBudget& steps_left) {
  Analyses& analyses = context.analyses();
  const flow::Graph& graph = analyses.graph();
  const ptx::Function& function = context.function();
  const flow::ValueId predicate = analyses.ssa().guard(barrier.branch);
  if (predicate == flow::kNone) return std::nullopt;
  const bool is_negated = function.instructions[barrier.branch].guard.negated;
  const BlockId branch = graph.block_of(barrier.branch), goal = graph.block_of(barrier.barrier);
  const bool true_comes = barrier.on_taken_side != is_negated;
  if (barrier.leaves_loop || goal == branch)
    return find_filtered_split(context, predicate, barrier.branch, true_comes, {}, steps_left);
  const BlockId join = analyses.post_dominators().parent(branch);
  const auto will_do = [&](flow::Evaluator& evaluator, size_t n, bool is_to_come) {
    if (follow(analyses, evaluator, n, branch, branch, nullptr, steps_left).blocks[goal] != is_to_come) return false;
    if (!is_to_come && barrier.other != GuardedBarrier::OtherSide::other_barrier) {
      const Reached missing = follow(analyses, evaluator, n, branch, branch, &has_barrier, steps_left);
      const bool rejoins = join < missing.blocks.size() && missing.blocks[join];
      if (!missing.ends && !(barrier.other == GuardedBarrier::OtherSide::rejoins && rejoins)) return false;
    }
    return branch == 0 || follow(analyses, evaluator, n, 0, flow::kNone, nullptr, steps_left).blocks[branch];
  };
  bool has_refused = false;
  const auto find = [&](bool value_of_comes) {
    return find_filtered_split(
        context, predicate, barrier.branch, value_of_comes,
        [&](flow::Evaluator& evaluator, size_t n, bool value) {
          const bool good = will_do(evaluator, n, value == value_of_comes);
          has_refused |= !good;
          return good;
        },
        steps_left);
  };
  auto split = find(true_comes);
  return !split && has_refused ? find(!true_comes) : split;
}

GuardedBarriers guarded_barriers(Context& context) { return GuardSearch(context.analyses()).run(); }

}  // namespace ptxkit::rules
