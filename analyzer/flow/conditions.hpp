// Conditions under which control reaches a block: branch predicates on the dominator path, and bounds on loop
// iterations.
#pragma once

#include <optional>
#include <vector>

#include "analyzer/flow/evaluate.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::flow {

struct Condition {
  ValueId predicate = kNone;
  bool expected = true;
  bool operator==(const Condition&) const = default;
};

class Conditions {
 public:
  Conditions(const Ssa& ssa, const DominatorTree& dominators, const Loops& loops);

  // Innermost first. Returns the nearest kMaxConditions; cutting a longer chain only loses precision.
  std::vector<Condition> of(BlockId block) const;
  // The same plus the instruction's own guard, with conjunctions split.
  std::vector<Condition> of_instruction(ptx::InstructionId id) const;

  static constexpr size_t kMaxConditions = 64;

 private:
  void split(Condition condition, std::vector<Condition>& into) const;
  const Ssa* ssa_;
  const DominatorTree* dominators_;
  std::vector<Condition> entry_;  // of the edge into each block with a single predecessor; predicate kNone otherwise
};

// Whether an undecided test lets neighbouring threads pass together. A comparison of integers with a bound does; a test
// for equality may select a single thread.
bool is_bound(const Ssa& ssa, ValueId predicate);

// The largest iteration of `loop` in which `block` runs, from exit tests that compare an induction variable with a
// constant. Nothing where no test bounds it.
std::optional<int64_t> last_iteration(Forms& forms, const DominatorTree& dominators, LoopId loop, BlockId block);

}  // namespace ptxkit::flow
