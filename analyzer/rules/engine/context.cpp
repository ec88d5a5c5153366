#include "analyzer/rules/engine/context.hpp"

#include "analyzer/rules/engine/analyses.hpp"
#include "support/check.hpp"

namespace ptxkit::rules {

Context::Context(const ptx::Module& of_module, ptx::FunctionId function, const std::vector<ptx::Diagnostic>& found,
                 const Options& chosen)
    : module(of_module), function_id(function), diagnostics(found), options(chosen) {
  if (has_body()) inlined_ = flow::inline_calls(module, function_id);
}

Context::~Context() = default;

bool Context::has_body() const {
  return function_id != ptx::kNone && module.functions[function_id].has_body &&
         !module.functions[function_id].instructions.empty();
}

const ptx::Function& Context::function() const {
  PTXKIT_CHECK(function_id < module.functions.size(), "a context without a function was asked for it");
  return inlined_ ? inlined_->function : module.functions[function_id];
}

Analyses& Context::analyses() {
  if (!analyses_) analyses_ = std::make_unique<Analyses>(*this);
  return *analyses_;
}

bool Analyses::fits() {
  // Tables that many brx.idx share make the number of edges quadratic; phis can be that too, which Ssa says.
  constexpr uint64_t kMaxTargets = 1'000'000, kTargetsOfInstruction = 16;
  if (!fits_) {
    const uint64_t instructions = context_->function().instructions.size();
    const uint64_t most = kMaxTargets + kTargetsOfInstruction * instructions;
    fits_ = flow::target_count(context_->function()) <= most && ssa().is_complete();
  }
  return *fits_;
}

const flow::Graph& Analyses::graph() {
  if (!graph_) graph_.emplace(context_->function());
  return *graph_;
}

const flow::DominatorTree& Analyses::dominators() {
  if (!dominators_) dominators_ = flow::DominatorTree::dominators(graph());
  return *dominators_;
}

const flow::DominatorTree& Analyses::post_dominators() {
  if (!post_dominators_) post_dominators_ = flow::DominatorTree::post_dominators(graph());
  return *post_dominators_;
}

const flow::Loops& Analyses::loops() {
  if (!loops_) loops_.emplace(graph(), dominators());
  return *loops_;
}

const flow::Ssa& Analyses::ssa() {
  if (!ssa_) ssa_.emplace(graph(), dominators());
  return *ssa_;
}

const flow::LaunchShape& Analyses::shape() {
  if (!shape_) {
    const LaunchSet* launch = context_->options.launch;
    const auto found = launch ? launch->find(context_->function().name) : LaunchSet::const_iterator{};
    const bool has_facts = launch && found != launch->end();
    shape_ = flow::LaunchShape::of(context_->function(), has_facts ? &found->second : nullptr);
  }
  return *shape_;
}

const flow::Domain& Analyses::domain() {
  if (!domain_) domain_.emplace(context_->module, ssa(), shape());
  return *domain_;
}

flow::Forms& Analyses::forms() {
  if (!forms_) forms_.emplace(domain(), loops());
  return *forms_;
}

const flow::Conditions& Analyses::conditions() {
  if (!conditions_) conditions_.emplace(ssa(), dominators(), loops());
  return *conditions_;
}

const flow::UniformityAnalysis& Analyses::uniformity() {
  if (!uniformity_) uniformity_.emplace(domain(), post_dominators());
  return *uniformity_;
}

const flow::UniformityAnalysis& Analyses::uniformity_of_row(unsigned dimension) {
  auto& row = row_uniformity_[dimension];
  if (!row) row.emplace(domain(), post_dominators(), "xyz"[dimension]);
  return *row;
}

bool Analyses::reads_special(ptx::SpecialRegister special, unsigned dimension) {
  if (!special_reads_) {
    special_reads_.emplace();
    for (const ptx::Operand& operand : context_->function().operand_pool) {
      if (operand.kind == ptx::OperandKind::special)
        special_reads_->insert({static_cast<ptx::SpecialRegister>(operand.id), static_cast<char>(operand.component)});
    }
  }
  return special_reads_->contains({special, static_cast<char>('x' + dimension)});
}

const std::vector<ptx::Access>& Analyses::accesses() {
  if (!accesses_) {
    accesses_.emplace();
    for (ptx::InstructionId id = 0; id < context_->function().instructions.size(); ++id) {
      if (!graph().is_reachable(graph().block_of(id))) continue;
      const ptx::Accesses found = ptx::accesses_of(context_->function(), id);
      accesses_->insert(accesses_->end(), found.items, found.items + found.count);
    }
  }
  return *accesses_;
}

const flow::RegisterPressure& Analyses::pressure() {
  if (!pressure_) pressure_ = flow::pressure(ssa());
  return *pressure_;
}

const GuardedBarriers& Analyses::guarded_barriers() {
  if (!guarded_barriers_) guarded_barriers_ = rules::guarded_barriers(*context_);
  return *guarded_barriers_;
}

flow::Evaluator& Analyses::lanes(uint32_t warp, flow::BlockId block) {
  constexpr size_t kMaxKept = 64;
  const flow::LoopId loop = loops().innermost(block);
  if (const auto found = lanes_.find({warp, loop}); found != lanes_.end()) return found->second;
  if (lanes_.size() >= kMaxKept) lanes_.clear();
  const uint32_t count = shape().max_threads;
  std::vector<flow::Thread> threads;
  for (uint32_t n = 32 * warp; n < std::min(32 * warp + 32, count); ++n) threads.push_back(thread_of(shape(), n));
  return lanes_.try_emplace({warp, loop}, forms(), std::move(threads), flow::first_iterations(loops(), block))
      .first->second;
}

const Alignment& Analyses::alignment() {
  if (!alignment_) alignment_.emplace(*context_);
  return *alignment_;
}

}  // namespace ptxkit::rules
