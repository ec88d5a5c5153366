// Natural loops: a header that dominates a block with an edge back to it, and all blocks that reach that edge without
// passing the header. Loops with the same header are merged. Loops nest by their blocks.
#pragma once

#include <span>
#include <vector>

#include "analyzer/flow/dominators.hpp"
#include "analyzer/flow/graph.hpp"

namespace ptxkit::flow {

using LoopId = uint32_t;

struct Loop {
  BlockId header = kNone;
  LoopId parent = kNone;         // the enclosing loop
  uint32_t depth = 1;            // 1 for outermost
  std::vector<BlockId> latches;  // sources of the back edges, rising
  uint32_t first = 0, last = 0;  // range [first, last) in Loops::all() of this loop and the loops inside it
};

class Loops {
 public:
  Loops(const Graph& graph, const DominatorTree& dominators);

  std::span<const Loop> all() const { return loops_; }  // outer loops before inner ones
  const Loop& loop(LoopId id) const { return loops_[id]; }
  LoopId innermost(BlockId block) const { return innermost_[block]; }  // kNone outside every loop
  bool contains(LoopId loop, BlockId block) const;
  bool is_back_edge(BlockId from, BlockId to) const;
  // There is an edge back to a block that does not dominate its source: the loop has two entries.
  bool is_irreducible() const { return irreducible_; }

 private:
  std::vector<Loop> loops_;
  std::vector<LoopId> innermost_;
  bool irreducible_ = false;
};

}  // namespace ptxkit::flow
