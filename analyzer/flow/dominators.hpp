// Dominators and post-dominators of a graph, as trees with constant-time queries.
//
// Immediate dominators are computed by the iteration of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance
// Algorithm", 2001) over reverse postorder. Post-dominators use the same code on the reversed graph with one virtual
// exit, node size(). An infinite loop gets an edge to the exit from its last block in program order, so every reachable
// block has a post-dominator.
#pragma once

#include <vector>

#include "analyzer/flow/graph.hpp"

namespace ptxkit::flow {

class DominatorTree {
 public:
  static DominatorTree dominators(const Graph& graph);
  static DominatorTree post_dominators(const Graph& graph);

  // kNone for the root and for unreachable blocks. The root of post-dominators is graph.size().
  BlockId parent(BlockId id) const { return parent_[id]; }
  BlockId root() const { return root_; }
  bool is_in_tree(BlockId id) const { return enter_[id] != kNone; }
  // Whether `a` (post-)dominates `b`; every block dominates itself.
  bool dominates(BlockId a, BlockId b) const {
    return is_in_tree(a) && is_in_tree(b) && enter_[a] <= enter_[b] && leave_[b] <= leave_[a];
  }
  const std::vector<BlockId>& preorder() const { return preorder_; }  // parents before children

 private:
  void build(BlockId root, const std::vector<BlockId>& order, std::vector<std::vector<BlockId>> predecessors);
  BlockId root_ = 0;
  std::vector<BlockId> parent_, preorder_;
  std::vector<uint32_t> enter_, leave_;
};

}  // namespace ptxkit::flow
