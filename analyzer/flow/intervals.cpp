#include "analyzer/flow/intervals.hpp"

#include <algorithm>

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
  std::vector<bool> queued(graph.size(), false);
  std::vector<BlockId> work;
  for (const BlockId block : graph.reverse_postorder()) {
    queued[block] = true;
    work.push_back(block);
  }
  std::reverse(work.begin(), work.end());
  while (!work.empty() && complete_) {
    const BlockId block = work.back();
    work.pop_back();
    queued[block] = false;
    std::vector<Origin> out = in_[block];
    for (ptx::InstructionId id = graph.block(block).end; id-- > graph.block(block).first;)
      if (separates[id]) {
        out.assign(1, {id, Origin::kNoCrossing});
        break;
      }
    for (const BlockId next : graph.successors(block)) {
      bool grown = false;
      for (Origin origin : out) {
        const LoopId loop = loops.innermost(next);
        if (loops.is_back_edge(block, next) && !uncounted.contains(loop)) {
          origin.crossing = origin.crossing == Origin::kNoCrossing ? loop : Origin::kManyCrossings;
        }
        const auto place = std::lower_bound(in_[next].begin(), in_[next].end(), origin);
        if (place != in_[next].end() && *place == origin) continue;
        in_[next].insert(place, origin);
        grown = true;
      }
      if (in_[next].size() > limit) complete_ = false;
      if (grown && !queued[next]) {
        queued[next] = true;
        work.push_back(next);
      }
    }
  }
}

std::vector<Origin> Intervals::at(ptx::InstructionId id) const {
  if (before_[id] != kNone) return {{before_[id], Origin::kNoCrossing}};
  return in_[graph_->block_of(id)];
}

Concurrency Intervals::concurrency(ptx::InstructionId first, ptx::InstructionId second) const {
  Concurrency found;
  const std::vector<Origin> a = at(first), b = at(second);
  for (const Origin& x : a)
    for (const Origin& y : b) {
      if (x.barrier != y.barrier) continue;
      if (x.crossing == Origin::kManyCrossings || y.crossing == Origin::kManyCrossings)
        found.unbounded = true;
      else if (x.crossing == y.crossing)
        found.same_iteration = true;
      else if (y.crossing == Origin::kNoCrossing)
        found.first_is_later = x.crossing;
      else if (x.crossing == Origin::kNoCrossing)
        found.second_is_later = y.crossing;
      else
        found.unbounded = true;
    }
  return found;
}

std::set<std::pair<uint32_t, uint32_t>> Intervals::crossings(ptx::InstructionId first,
                                                             ptx::InstructionId second) const {
  std::set<std::pair<uint32_t, uint32_t>> found;
  const std::vector<Origin> a = at(first), b = at(second);
  for (const Origin& x : a)
    for (const Origin& y : b)
      if (x.barrier == y.barrier) found.emplace(x.crossing, y.crossing);
  return found;
}

bool Intervals::is_separated(ptx::InstructionId first, ptx::InstructionId end) const {
  return std::find(separates_->begin() + first, separates_->begin() + end, true) != separates_->begin() + end;
}

// The blocks from whose beginning control can reach `id` without a barrier and without passing the block `join`.
std::vector<bool> Intervals::blocks_before(ptx::InstructionId id, const std::set<Edge>& closed, BlockId join) const {
  std::vector<bool> found(graph_->size(), false);
  const BlockId own = graph_->block_of(id);
  if (own == join || is_separated(graph_->block(own).first, id)) return found;
  found[own] = true;
  std::vector<BlockId> work{own};
  while (!work.empty()) {
    const BlockId block = work.back();
    work.pop_back();
    for (const BlockId before : graph_->predecessors(block)) {
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
                                  const DominatorTree& post_dominators, const std::set<Edge>& closed) const {
  if (first == second) return true;
  const BlockId a = graph_->block_of(first), b = graph_->block_of(second);
  if (a == b && !is_separated(std::min(first, second), std::max(first, second))) return true;
  const std::vector<bool> to_first = blocks_before(first, closed), to_second = blocks_before(second, closed);
  auto leads = [&](ptx::InstructionId from, const std::vector<bool>& to) {
    const BlockId block = graph_->block_of(from);
    const auto next = graph_->successors(block);
    return !is_separated(from + 1, graph_->block(block).end) &&
           std::any_of(next.begin(), next.end(),
                       [&](BlockId each) { return to[each] && !closed.contains({block, each}); });
  };
  if (leads(first, to_second) || leads(second, to_first)) return true;
  for (BlockId block = 0; block < graph_->size(); ++block) {
    if (!parts[block]) continue;
    const auto ways = graph_->successors(block);
    std::vector<BlockId> sides(ways.begin(), ways.end());
    std::erase_if(sides, [&](BlockId side) { return closed.contains({block, side}); });
    const auto part_to = [&](const std::vector<bool>& a_way, const std::vector<bool>& another) {
      for (const BlockId one : sides)
        for (const BlockId other : sides)
          if (one != other && a_way[one] && another[other]) return true;
      return false;
    };
    if (!part_to(to_first, to_second)) continue;
    const BlockId join = post_dominators.parent(block);
    if (part_to(blocks_before(first, closed, join), to_second) ||
        part_to(to_first, blocks_before(second, closed, join)))
      return true;
  }
  return false;
}

}  // namespace ptxkit::flow
