// Barrier intervals: which instructions may run between the same two barriers.
//
// Every instruction is labelled with the barriers (or the entry) from which control comes to it without passing
// another, and with how the way there crosses back edges: not at all, once over the back edge of one loop, or more. All
// threads of a CTA pass the same barriers, so two threads can be at two instructions at the same time only where those
// share a barrier they come from; and where both come from it in the same manner they are in the same iteration.
#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "analyzer/flow/dominators.hpp"
#include "analyzer/flow/loops.hpp"

namespace ptxkit::flow {

struct Origin {
  static constexpr uint32_t kNoCrossing = 0xffffffff, kManyCrossings = 0xfffffffe;
  ptx::InstructionId barrier = kNone;  // kNone: the entry
  uint32_t crossing = kNoCrossing;     // LoopId of the one back edge crossed, or one of the two above
  auto operator<=>(const Origin&) const = default;
};

// How two instructions of one interval stand to each other.
struct Concurrency {
  bool same_iteration = false;    // for some shared barrier both are in the same iteration of every loop
  LoopId first_is_later = kNone;  // the first may be one iteration of this loop ahead
  LoopId second_is_later = kNone;
  bool unbounded = false;  // iterations may be apart in other ways
  bool any() const { return same_iteration || unbounded || first_is_later != kNone || second_is_later != kNone; }
};

using Edge = std::pair<BlockId, BlockId>;  // from, to

class Intervals {
 public:
  // `separates[instruction]`: whether the instruction is a barrier. Sets larger than `limit` origins are given up.
  Intervals(const Graph& graph, const Loops& loops, const std::vector<bool>& separates, size_t limit);

  bool is_complete() const { return complete_; }
  // Precondition: is_complete(), both reachable.
  Concurrency concurrency(ptx::InstructionId first, ptx::InstructionId second) const;
  // Whether two threads can be at the two in one interval if they part at the end of blocks in `parts` only: on one
  // way, one ahead of the other, or each on another side of such a block, and at most one behind where its sides join.
  // No thread goes over an edge of `closed`.
  bool can_meet(ptx::InstructionId first, ptx::InstructionId second, const std::vector<bool>& parts,
                const DominatorTree& post_dominators, const std::set<Edge>& closed) const;

 private:
  std::vector<Origin> at(ptx::InstructionId id) const;
  bool is_separated(ptx::InstructionId first, ptx::InstructionId end) const;
  std::vector<bool> blocks_before(ptx::InstructionId id, const std::set<Edge>& closed, BlockId join = kNone) const;
  const Graph* graph_;
  const std::vector<bool>* separates_;
  std::vector<std::vector<Origin>> in_;     // sorted
  std::vector<ptx::InstructionId> before_;  // of each instruction: the nearest barrier before it in its block, or kNone
  bool complete_ = true;
};

}  // namespace ptxkit::flow
