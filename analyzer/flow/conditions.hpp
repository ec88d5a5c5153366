// What must hold for control to be at a block: branch predicates on the dominator path, and bounds on loop iterations.
#pragma once

#include "analyzer/flow/evaluate.hpp"

namespace ptxkit::flow {

struct Condition {
  ValueId predicate = kNone;
  bool expected = true;
  bool operator==(const Condition&) const = default;
};

class Conditions {
 public:
  Conditions(const Ssa& ssa, const DominatorTree& dominators, const Loops& loops);

  // Outermost last. At most kMaxConditions of the nearest; a longer chain is cut, which only loses knowledge.
  std::vector<Condition> of(BlockId block) const;
  // The same with the instruction's own guard, conjunctions taken apart.
  std::vector<Condition> of_instruction(ptx::InstructionId id) const;

  static constexpr size_t kMaxConditions = 64;

 private:
  void split(Condition condition, std::vector<Condition>& into) const;
  const Ssa* ssa_;
  const DominatorTree* dominators_;
  std::vector<Condition> entry_;  // of the edge into each block that has one way in; predicate kNone otherwise
};

// Whether a test that nothing decides lets neighbouring threads through together: one of integers against a bound does,
// one for equality may be there to pick a single thread.
bool is_bound(const Ssa& ssa, ValueId predicate);

// Largest iteration number of `loop` with which `block` runs, from exit tests that compare an induction variable with
// a constant. Nothing where no test tells.
std::optional<int64_t> last_iteration(Forms& forms, const DominatorTree& dominators, LoopId loop, BlockId block);

}  // namespace ptxkit::flow
