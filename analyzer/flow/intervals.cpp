#include "analyzer/flow/intervals.hpp"

#include <algorithm>
#include <utility>

namespace ptxkit::flow {

Intervals::Intervals(const Graph& graph, const Loops& loops, const std::vector<bool>& separates, size_t limit,
                     const std::set<LoopId>& uncounted)
    : graph_(&graph), separates_(&separates) {
  in_.resize(graph.size());
  if (graph.size() == 0) return;
  in_[0].push_back({});
  before_.assign(separates.size(), kNone);
  for (BlockId block = 0; block < graph.size(); ++block)
    for (ptx::InstructionId id = graph.block(block).first + 1; id < graph.block(block).end; ++id)
      before_[id] = separates[id - 1] ? id - 1 : before_[id - 1];
  // Each origin goes over each edge once: `fresh` holds those of a block that have not gone on.
  std::vector<std::vector<Origin>> fresh(graph.size());
  fresh[0].push_back({});
  std::vector<BlockId> work;
  for (BlockId block = 0; block < graph.size(); ++block) {
    if (!graph.is_reachable(block)) continue;
    const ptx::InstructionId last = graph.last(block);
    const ptx::InstructionId barrier = separates[last] ? last : before_[last];
    // What comes to a block with a barrier ends there.
    if (barrier != kNone) fresh[block].assign(1, {barrier, Origin::kNoCrossing});
    if (!fresh[block].empty()) work.push_back(block);
  }
  StepBudget steps_left(kMaxSteps);
  while (!work.empty() && complete_) {
    const BlockId block = work.back();
    work.pop_back();
    const std::vector<Origin> out = std::exchange(fresh[block], {});
    for (const BlockId next : graph.successors(block)) {
      const LoopId loop = loops.innermost(next);
      const bool is_crossing = loops.is_back_edge(block, next) && !uncounted.contains(loop);
      const ptx::InstructionId last = graph.last(next);
      const bool goes_on = !separates[last] && before_[last] == kNone;
      const bool is_queued = !fresh[next].empty();
      for (Origin origin : out) {
        if (is_crossing) origin.crossing = origin.crossing == Origin::kNoCrossing ? loop : Origin::kManyCrossings;
        const auto place = std::lower_bound(in_[next].begin(), in_[next].end(), origin);
        if (place != in_[next].end() && *place == origin) continue;
        in_[next].insert(place, origin);
        if (goes_on) fresh[next].push_back(origin);
      }
      steps_left.take(1 + out.size());
      if (in_[next].size() > limit || steps_left.is_spent()) complete_ = false;
      if (!is_queued && !fresh[next].empty()) work.push_back(next);
    }
  }
}

std::span<const Origin> Intervals::at(ptx::InstructionId id, Origin& own) const {
  if (before_[id] == kNone) return in_[graph_->block_of(id)];
  own = {before_[id], Origin::kNoCrossing};
  return {&own, 1};
}

namespace {

// The origins of one barrier: at the beginning of `left`, which they are taken off. Loops sort before the two others.
struct Crossings {
  std::span<const Origin> loops;
  bool has_many = false, has_none = false;

  explicit Crossings(std::span<const Origin>& left) {
    const ptx::InstructionId barrier = left.front().barrier;
    size_t end = 0, loop_count = 0;
    for (; end < left.size() && left[end].barrier == barrier; ++end) {
      has_many |= left[end].crossing == Origin::kManyCrossings;
      has_none |= left[end].crossing == Origin::kNoCrossing;
      loop_count += left[end].crossing < Origin::kManyCrossings;
    }
    loops = left.first(loop_count);
    left = left.subspan(end);
  }
};

}  // namespace

Concurrency Intervals::concurrency(ptx::InstructionId first, ptx::InstructionId second) const {
  Concurrency found;
  Origin first_own, second_own;
  std::span<const Origin> a = at(first, first_own), b = at(second, second_own);
  while (!a.empty() && !b.empty()) {
    if (a.front().barrier != b.front().barrier) {
      std::span<const Origin>& behind = a.front().barrier < b.front().barrier ? a : b;
      behind = behind.subspan(1);
      continue;
    }
    const Crossings x(a), y(b);
    if (x.has_many || y.has_many) found.unbounded = true;
    if (x.has_none && y.has_none) found.same_iteration = true;
    if (y.has_none && !x.loops.empty()) found.first_is_later = x.loops.back().crossing;
    if (x.has_none && !y.loops.empty()) found.second_is_later = y.loops.back().crossing;
    if (x.loops.empty() || y.loops.empty()) continue;
    if (x.loops.size() > 1 || y.loops.size() > 1 || x.loops[0] != y.loops[0]) found.unbounded = true;
    for (size_t i = 0, j = 0; i < x.loops.size() && j < y.loops.size();) {
      if (x.loops[i] == y.loops[j]) {
        found.same_iteration = true;
        break;
      }
      x.loops[i] < y.loops[j] ? ++i : ++j;
    }
  }
  return found;
}

std::set<std::pair<uint32_t, uint32_t>> Intervals::crossings(ptx::InstructionId first,
                                                             ptx::InstructionId second) const {
  std::set<std::pair<uint32_t, uint32_t>> found;
  Origin first_own, second_own;
  const std::span<const Origin> a = at(first, first_own), b = at(second, second_own);
  for (const Origin& x : a)
    for (const Origin& y : b)
      if (x.barrier == y.barrier) found.emplace(x.crossing, y.crossing);
  return found;
}

// Precondition: both are of one block, or `end` is the end of the block of `first`.
bool Intervals::is_separated(ptx::InstructionId first, ptx::InstructionId end) const {
  if (first >= end) return false;
  const ptx::InstructionId last = end - 1;
  return (*separates_)[last] || (before_[last] != kNone && before_[last] >= first);
}

// The blocks from whose beginning control can reach `id` without a barrier and without passing the block `join`.
std::vector<bool> Intervals::blocks_before(ptx::InstructionId id, const std::set<Edge>& closed, StepBudget& steps_left,
                                           BlockId join) const {
  std::vector<bool> found(graph_->size(), false);
  steps_left.take(1 + graph_->size() / 64);
  const BlockId own = graph_->block_of(id);
  if (own == join || is_separated(graph_->block(own).first, id)) return found;
  found[own] = true;
  std::vector<BlockId> work{own};
  while (!work.empty() && !steps_left.is_spent()) {
    const BlockId block = work.back();
    work.pop_back();
    const auto ways = graph_->predecessors(block);
    steps_left.take(1 + ways.size());
    for (const BlockId before : ways) {
      if (found[before] || before == join || closed.contains({before, block}) ||
          is_separated(graph_->block(before).first, graph_->block(before).end))
        continue;
      found[before] = true;
      work.push_back(before);
    }
  }
  return found;
}

// After the join both threads follow the same path until they diverge again.
bool Intervals::can_be_concurrent(ptx::InstructionId first, ptx::InstructionId second, const std::vector<bool>& parts,
                                  const DominatorTree& post_dominators, const std::set<Edge>& closed,
                                  StepBudget& steps_left) const {
  if (steps_left.is_spent()) return false;
  if (first == second) return true;
  const BlockId a = graph_->block_of(first), b = graph_->block_of(second);
  if (a == b && !is_separated(std::min(first, second), std::max(first, second))) return true;
  const std::vector<bool> to_first = blocks_before(first, closed, steps_left),
                          to_second = blocks_before(second, closed, steps_left);
  auto leads = [&](ptx::InstructionId from, const std::vector<bool>& to) {
    const BlockId block = graph_->block_of(from);
    const auto next = graph_->successors(block);
    return !is_separated(from + 1, graph_->block(block).end) &&
           std::any_of(next.begin(), next.end(),
                       [&](BlockId each) { return to[each] && !closed.contains({block, each}); });
  };
  if (steps_left.is_spent()) return false;
  if (leads(first, to_second) || leads(second, to_first)) return true;
  for (BlockId block = 0; block < graph_->size(); ++block) {
    if (!parts[block]) continue;
    const auto ways = graph_->successors(block);
    steps_left.take(ways.size());
    std::vector<BlockId> sides(ways.begin(), ways.end());
    std::erase_if(sides, [&](BlockId side) { return closed.contains({block, side}); });
    // One side leads one way, and another side the other.
    const auto part_to = [&](const std::vector<bool>& a_way, const std::vector<bool>& another) {
      size_t one_count = 0, other_count = 0, both_count = 0;
      for (const BlockId side : sides) {
        one_count += a_way[side];
        other_count += another[side];
        both_count += a_way[side] && another[side];
      }
      const bool is_same_side = one_count == 1 && other_count == 1 && both_count == 1;
      return one_count > 0 && other_count > 0 && !is_same_side;
    };
    if (!part_to(to_first, to_second)) continue;
    const BlockId join = post_dominators.parent(block);
    const bool part = part_to(blocks_before(first, closed, steps_left, join), to_second) ||
                      part_to(to_first, blocks_before(second, closed, steps_left, join));
    if (steps_left.is_spent()) return false;
    if (part) return true;
  }
  return false;
}

}  // namespace ptxkit::flow
