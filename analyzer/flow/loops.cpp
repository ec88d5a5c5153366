// Finds loops from the innermost outwards (headers in reverse of reverse postorder). A block that already belongs to a
// loop is entered through the outermost known parent of that loop, so every block is visited at most once per nesting
// level.
#include "analyzer/flow/loops.hpp"

#include <algorithm>

namespace ptxkit::flow {

Loops::Loops(const Graph& graph, const DominatorTree& dominators) {
  innermost_.assign(graph.size(), kNone);
  const auto order = graph.reverse_postorder();
  std::vector<LoopId> parent_link;
  std::vector<Loop> found;
  auto outermost = [&](LoopId loop) {
    while (parent_link[loop] != kNone) loop = parent_link[loop];
    return loop;
  };
  for (size_t i = order.size(); i-- > 0;) {
    const BlockId header = order[i];
    std::vector<BlockId> latches;
    for (const BlockId predecessor : graph.predecessors(header)) {
      if (!graph.is_reachable(predecessor)) continue;
      if (dominators.dominates(header, predecessor))
        latches.push_back(predecessor);
      else if (graph.order_index(predecessor) >= graph.order_index(header))
        irreducible_ = true;
    }
    if (latches.empty()) continue;
    const LoopId id = static_cast<LoopId>(found.size());
    found.push_back({.header = header, .latches = latches});
    parent_link.push_back(kNone);
    std::vector<BlockId> work = latches;
    if (innermost_[header] == kNone) innermost_[header] = id;
    while (!work.empty()) {
      const BlockId block = work.back();
      work.pop_back();
      if (block == header) continue;
      BlockId entry = block;
      if (innermost_[block] == kNone) {
        innermost_[block] = id;
      } else {
        const LoopId outer = outermost(innermost_[block]);
        if (outer == id) continue;
        parent_link[outer] = id;
        entry = found[outer].header;
      }
      for (const BlockId predecessor : graph.predecessors(entry))
        if (graph.is_reachable(predecessor) && !(entry != block && dominators.dominates(entry, predecessor)))
          work.push_back(predecessor);
    }
  }

  // Renumber: outer loops first, each directly followed by its inner loops.
  std::vector<std::vector<LoopId>> children(found.size());
  std::vector<LoopId> roots;
  for (LoopId id = static_cast<LoopId>(found.size()); id-- > 0;)
    (parent_link[id] == kNone ? roots : children[parent_link[id]]).push_back(id);
  std::vector<LoopId> renamed(found.size(), kNone);
  std::vector<std::pair<LoopId, uint32_t>> stack;
  for (const LoopId root : roots) {
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      const LoopId old = stack.back().first;
      if (stack.back().second == 0) {
        renamed[old] = static_cast<LoopId>(loops_.size());
        Loop loop = found[old];
        loop.first = renamed[old];
        if (parent_link[old] != kNone) {
          loop.parent = renamed[parent_link[old]];
          loop.depth = loops_[loop.parent].depth + 1;
        }
        loops_.push_back(std::move(loop));
      }
      const uint32_t next = stack.back().second++;
      if (next < children[old].size()) {
        stack.emplace_back(children[old][next], 0);
      } else {
        loops_[renamed[old]].last = static_cast<uint32_t>(loops_.size());
        stack.pop_back();
      }
    }
  }
  for (LoopId& loop : innermost_)
    if (loop != kNone) loop = renamed[loop];
}

bool Loops::contains(LoopId loop, BlockId block) const {
  const LoopId inner = innermost_[block];
  return inner != kNone && inner >= loops_[loop].first && inner < loops_[loop].last;
}

bool Loops::is_back_edge(BlockId from, BlockId to) const {
  const LoopId loop = innermost_[to];
  if (loop == kNone || loops_[loop].header != to) return false;
  const auto& latches = loops_[loop].latches;
  return std::ranges::binary_search(latches, from);
}

}  // namespace ptxkit::flow
