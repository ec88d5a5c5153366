// Barrier intervals: which instructions may run between the same two barriers.
//
// Each instruction is labelled with the barriers (or the entry) from which control reaches it without passing another
// barrier, and with the back edges on the way: none, one crossing of one loop's back edge, or more. All threads of a
// CTA pass the same barriers. Two threads can therefore be at two instructions at the same time only if the
// instructions share a barrier; if both reach them in the same manner, they are in the same iteration.
#pragma once

#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "analyzer/flow/dominators.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/step_budget.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::flow {

struct Origin {
  static constexpr uint32_t kNoCrossing = 0xffffffff, kManyCrossings = 0xfffffffe;
  ptx::InstructionId barrier = kNone;  // kNone: the entry
  uint32_t crossing = kNoCrossing;     // LoopId of the single back edge crossed, or one of the two above
  auto operator<=>(const Origin&) const = default;
};

// The possible relative positions of two instructions in one interval.
struct Concurrency {
  bool same_iteration = false;    // for some shared barrier, both in the same iteration of every loop
  LoopId first_is_later = kNone;  // the first may be one iteration of this loop ahead
  LoopId second_is_later = kNone;
  bool unbounded = false;  // iterations may differ in other ways
  bool any() const { return same_iteration || unbounded || first_is_later != kNone || second_is_later != kNone; }
};

using Edge = std::pair<BlockId, BlockId>;  // from, to

class Intervals {
 public:
  // `separates[instruction]`: whether the instruction is a barrier. The analysis gives up on sets of more than `limit`
  // origins, and after kMaxSteps. Back edges of the loops of `uncounted` are no crossings.
  Intervals(const Graph& graph, const Loops& loops, const std::vector<bool>& separates, size_t limit,
            const std::set<LoopId>& uncounted = {});

  bool is_complete() const { return complete_; }
  // Precondition: is_complete(), and both instructions are reachable.
  Concurrency concurrency(ptx::InstructionId first, ptx::InstructionId second) const;
  // The crossings of the two instructions from each barrier that they share.
  std::set<std::pair<uint32_t, uint32_t>> crossings(ptx::InstructionId first, ptx::InstructionId second) const;
  // Whether two threads can be at the two instructions in one interval if threads diverge only at the ends of blocks in
  // `parts`: on one path, one ahead of the other, or on different sides of such a block, at most one of them beyond the
  // join of its sides. No thread takes an edge of `closed`. The search takes its steps off `steps_left`; if none is
  // left the answer is false and means nothing.
  bool can_be_concurrent(ptx::InstructionId first, ptx::InstructionId second, const std::vector<bool>& parts,
                         const DominatorTree& post_dominators, const std::set<Edge>& closed,
                         StepBudget& steps_left) const;

  static constexpr uint64_t kMaxSteps = 8'000'000;  // an origin that goes over an edge

 private:
  // The origins of an instruction, in rising order: `own` if that is one, which must outlive the result.
  std::span<const Origin> at(ptx::InstructionId id, Origin& own) const;
  bool is_separated(ptx::InstructionId first, ptx::InstructionId end) const;
  std::vector<bool> blocks_before(ptx::InstructionId id, const std::set<Edge>& closed, StepBudget& steps_left,
                                  BlockId join = kNone) const;
  const Graph* graph_;
  const std::vector<bool>* separates_;
  std::vector<std::vector<Origin>> in_;     // sorted
  std::vector<ptx::InstructionId> before_;  // for each instruction the nearest barrier before it in its block, or kNone
  bool complete_ = true;
};

}  // namespace ptxkit::flow
