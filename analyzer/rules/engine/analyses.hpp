// The analyses of one kernel, each made when first asked for. Internal to the rules.
#pragma once

#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/dominators.hpp"
#include "analyzer/flow/evaluate.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/launch.hpp"
#include "analyzer/flow/liveness.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/flow/uniformity.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/rules/engine/alignment.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/divergence.hpp"

namespace ptxkit::rules {

struct Analyses {
  explicit Analyses(Context& context) : context_(&context) {}

  // Whether the control flow is small enough for the other analyses. Where it is not, only run_rule() asks more.
  bool fits();
  const flow::Graph& graph();
  const flow::DominatorTree& dominators();
  const flow::DominatorTree& post_dominators();
  const flow::Loops& loops();
  const flow::Ssa& ssa();
  const flow::LaunchShape& shape();
  const flow::Domain& domain();
  flow::Forms& forms();
  const flow::Conditions& conditions();
  const flow::UniformityAnalysis& uniformity();
  // The same for threads whose %tid differs in one component, 0 to 2, alone.
  const flow::UniformityAnalysis& uniformity_of_row(unsigned dimension);
  // Whether the kernel reads the component, 0 to 2, of a special register.
  bool reads_special(ptx::SpecialRegister special, unsigned dimension);
  const std::vector<ptx::Access>& accesses();  // of reachable instructions, in program order
  const Alignment& alignment();
  const flow::RegisterPressure& pressure();
  const GuardedBarriers& guarded_barriers();
  // The threads of a warp that exist, in the first iteration of the loops around `block`: of the block that is
  // promised, or else of one row. Holds until the next call.
  flow::Evaluator& lanes(uint32_t warp, flow::BlockId block);

 private:
  Context* context_;
  std::optional<bool> fits_;
  std::optional<flow::Graph> graph_;
  std::optional<flow::DominatorTree> dominators_, post_dominators_;
  std::optional<flow::Loops> loops_;
  std::optional<flow::Ssa> ssa_;
  std::optional<flow::LaunchShape> shape_;
  std::optional<flow::Domain> domain_;
  std::optional<flow::Forms> forms_;
  std::optional<flow::Conditions> conditions_;
  std::optional<flow::UniformityAnalysis> uniformity_, row_uniformity_[3];
  std::optional<std::set<std::pair<ptx::SpecialRegister, char>>> special_reads_;  // register and component
  std::optional<std::vector<ptx::Access>> accesses_;
  std::optional<Alignment> alignment_;
  std::optional<flow::RegisterPressure> pressure_;
  std::optional<GuardedBarriers> guarded_barriers_;
  std::map<std::pair<uint32_t, flow::LoopId>, flow::Evaluator> lanes_;  // by warp and innermost loop
};

}  // namespace ptxkit::rules
