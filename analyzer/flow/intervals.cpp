#include "analyzer/flow/intervals.hpp"

#include <algorithm>

namespace ptxkit::flow {

Intervals::Intervals(const Graph& graph, const Loops& loops, const std::vector<bool>& separates, size_t limit)
    : graph_(&graph), separates_(&separates) {
  in_.resize(graph.size());
  if (graph.size() == 0) return;
  in_[0].push_back({});
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
        if (loops.is_back_edge(block, next)) {
          const LoopId loop = loops.innermost(next);
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
  const BlockId block = graph_->block_of(id);
  for (ptx::InstructionId i = id; i-- > graph_->block(block).first;)
    if ((*separates_)[i]) return {{i, Origin::kNoCrossing}};
  return in_[block];
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

}  // namespace ptxkit::flow
