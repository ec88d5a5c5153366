#include "analyzer/flow/dominators.hpp"

#include <algorithm>

namespace ptxkit::flow {

// `order` is a reverse postorder from the root of the graph with these `predecessors`. Predecessors are visited in
// descending order. If thousands of blocks in a chain branch to one block, the path up the tree is then walked once,
// and not once per predecessor.
void DominatorTree::build(BlockId root, const std::vector<BlockId>& order,
                          std::vector<std::vector<BlockId>> predecessors) {
  const size_t count = predecessors.size();
  root_ = root;
  parent_.assign(count, kNone);
  std::vector<uint32_t> index(count, kNone);
  for (uint32_t i = 0; i < order.size(); ++i) index[order[i]] = i;
  for (std::vector<BlockId>& each : predecessors)
    std::sort(each.begin(), each.end(), [&](BlockId a, BlockId b) { return index[a] > index[b]; });
  parent_[root] = root;
  for (bool changed = true; changed;) {
    changed = false;
    for (const BlockId id : order) {
      if (id == root) continue;
      BlockId best = kNone;
      for (const BlockId predecessor : predecessors[id]) {
        if (index[predecessor] == kNone || parent_[predecessor] == kNone) continue;
        if (best == kNone) {
          best = predecessor;
          continue;
        }
        BlockId other = predecessor;
        while (best != other) {
          while (index[other] > index[best]) other = parent_[other];
          while (index[best] > index[other]) best = parent_[best];
        }
      }
      if (best != kNone && parent_[id] != best) {
        parent_[id] = best;
        changed = true;
      }
    }
  }
  parent_[root] = kNone;

  std::vector<std::vector<BlockId>> children(count);
  for (const BlockId id : order)
    if (parent_[id] != kNone) children[parent_[id]].push_back(id);
  enter_.assign(count, kNone);
  leave_.assign(count, kNone);
  uint32_t clock = 0;
  std::vector<std::pair<BlockId, uint32_t>> stack{{root, 0}};
  enter_[root] = clock++;
  preorder_.push_back(root);
  while (!stack.empty()) {
    auto& [id, next] = stack.back();
    if (next < children[id].size()) {
      const BlockId child = children[id][next++];
      enter_[child] = clock++;
      preorder_.push_back(child);
      stack.emplace_back(child, 0);
    } else {
      leave_[id] = clock++;
      stack.pop_back();
    }
  }
}

DominatorTree DominatorTree::dominators(const Graph& graph) {
  DominatorTree tree;
  std::vector<std::vector<BlockId>> predecessors(graph.size());
  for (BlockId id = 0; id < graph.size(); ++id)
    predecessors[id].assign(graph.predecessors(id).begin(), graph.predecessors(id).end());
  if (graph.size() == 0) return tree;
  tree.build(0, {graph.reverse_postorder().begin(), graph.reverse_postorder().end()}, std::move(predecessors));
  return tree;
}

DominatorTree DominatorTree::post_dominators(const Graph& graph) {
  DominatorTree tree;
  if (graph.size() == 0) return tree;
  const BlockId exit = graph.size();
  // In the reversed graph a block's predecessors are its successors in the program, and the exit's successors are all
  // ends.
  std::vector<std::vector<BlockId>> predecessors(graph.size() + 1), successors(graph.size() + 1);
  auto connect = [&](BlockId from, BlockId to) {  // an edge of the program
    predecessors[from].push_back(to);
    successors[to].push_back(from);
  };
  for (const BlockId id : graph.reverse_postorder()) {
    for (const BlockId successor : graph.successors(id)) connect(id, successor);
    const Block& block = graph.block(id);
    if (block.exits || block.falls_through_end || block.successor_count == 0) connect(id, exit);
  }
  std::vector<bool> seen(graph.size() + 1, false);
  std::vector<BlockId> order;
  std::vector<std::pair<BlockId, uint32_t>> stack;
  auto walk = [&](BlockId start) {
    seen[start] = true;
    stack.emplace_back(start, 0);
    while (!stack.empty()) {
      auto& [id, next] = stack.back();
      if (next < successors[id].size()) {
        const BlockId to = successors[id][next++];
        if (seen[to]) continue;
        seen[to] = true;
        stack.emplace_back(to, 0);
      } else {
        order.push_back(id);
        stack.pop_back();
      }
    }
  };
  // Visit the blocks that reach an end, then infinite loops: each gets an edge from its last block.
  seen[exit] = true;
  std::vector<BlockId> ends = successors[exit];
  for (const BlockId id : ends)
    if (!seen[id]) walk(id);
  for (BlockId id = graph.size(); id-- > 0;)
    if (graph.is_reachable(id) && !seen[id]) {
      connect(id, exit);
      walk(id);
    }
  order.push_back(exit);
  std::reverse(order.begin(), order.end());
  tree.build(exit, order, std::move(predecessors));
  return tree;
}

}  // namespace ptxkit::flow
