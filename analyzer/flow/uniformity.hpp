// Uniformity: which values are the same in all threads of a CTA, and which branches diverge.
//
// A value varies if one of its inputs varies, or if the path of its thread does: where the paths of a divergent branch
// join, phis vary too. The joins of a branch are the blocks that both of its sides reach before its immediate
// post-dominator, and the post-dominator itself (Sampaio et al., "Divergence Analysis", 2013).
#pragma once

#include <optional>
#include <vector>

#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/position_set.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/flow/step_budget.hpp"

namespace ptxkit::flow {

enum class Uniformity : uint8_t {
  uniform,   // the same in every thread of the CTA
  loaded,    // read from memory at a uniform address: the same unless threads race
  warp,      // the same within a warp
  divergent  // may differ between any two threads
};

class UniformityAnalysis {
 public:
  // With `row` it compares only threads whose %tid differs in that component ('x', 'y' or 'z') alone.
  UniformityAnalysis(const Domain& domain, const DominatorTree& post_dominators,
                     std::optional<uint8_t> row = std::nullopt);

  Uniformity of(ValueId id) const { return levels_[id]; }
  Uniformity of(const Source& source) const;
  // Level of a block's last instruction if it has several successors or may end the thread; uniform otherwise.
  Uniformity branch(BlockId block) const;

 private:
  Uniformity transfer(ValueId id) const;
  Uniformity special(ptx::SpecialRegister special, uint8_t component) const;
  void settle();
  void spread(BlockId branch, Uniformity level);
  void raise(BlockId block, Uniformity level);

  const Domain* domain_;
  const DominatorTree* post_dominators_;
  std::optional<uint8_t> row_;
  std::vector<Uniformity> levels_, join_levels_, spread_;
  static constexpr uint32_t kManySides = kNone - 1;
  std::vector<uint32_t> reached_;   // the side of the branch that reaches a block
  StepBudget budget_;               // of walking the regions of branches; past it every join counts as divergent
  std::vector<uint32_t> position_;  // of a value in the order of the SSA form
  PositionSet values_, branches_;   // to be looked at: by position, and by index in reverse postorder
};

}  // namespace ptxkit::flow
