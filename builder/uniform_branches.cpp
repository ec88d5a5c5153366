// Finds the branches that all lanes of a warp take together, so that the PTX states it: `bra.uni`.
//
// ptxas cannot see that a condition is warp-uniform if it comes from memory or from a vote. It then guards the branch
// with a convergence barrier, unrolls loops for diverged lanes, and spends registers on both. The DSL's rates have this
// information, but the optimiser rewrites the author's branches. Therefore LLVM's uniformity analysis runs on the final
// IR, with the rates as its sources of divergence.
//
// The backend has no channel for the result. It carries debug locations faithfully (a merged location is dropped, never
// kept), so the column of a uniform branch is raised by kUniformColumn, and ptx_text.cpp subtracts it again.
#include <optional>

#include <llvm/Analysis/CycleAnalysis.h>
#include <llvm/Analysis/TargetTransformInfoImpl.h>
#include <llvm/Analysis/UniformityAnalysis.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/IR/PassManager.h>

#include "builder/trace_state.hpp"

namespace ptxkit::dsl {
namespace {

using llvm::Intrinsic::ID;

ID intrinsic_of(const llvm::Value* value) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(value);
  return call == nullptr ? llvm::Intrinsic::not_intrinsic : call->getIntrinsicID();
}

// The shift s with value = %tid.x >> s, apart from masked bits; negative for a left shift. Nothing if `value` has no
// such form.
std::optional<int> shift_of_thread(const llvm::Value* value) {
  if (intrinsic_of(value) == llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x) return 0;
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
  if (instruction == nullptr) return std::nullopt;
  if (llvm::isa<llvm::ZExtInst>(instruction) || llvm::isa<llvm::TruncInst>(instruction)) {
    return shift_of_thread(instruction->getOperand(0));
  }
  const bool is_shift =
      instruction->getOpcode() == llvm::Instruction::LShr || instruction->getOpcode() == llvm::Instruction::Shl;
  const bool is_mask = instruction->getOpcode() == llvm::Instruction::And;
  if (!is_shift && !is_mask) return std::nullopt;
  const auto* amount = llvm::dyn_cast<llvm::ConstantInt>(instruction->getOperand(1));
  const std::optional<int> inner = shift_of_thread(instruction->getOperand(0));
  if (amount == nullptr || !inner || is_mask) return is_mask ? inner : std::nullopt;
  const int by = static_cast<int>(amount->getZExtValue());
  return instruction->getOpcode() == llvm::Instruction::LShr ? *inner + by : *inner - by;
}

// The warp's index, in any form that the optimiser gives it: no bit depends on the low five bits of %tid.x. CTAs are
// one-dimensional and multiples of 32 threads, so the lanes of a warp share the other bits.
bool is_warp_index(const llvm::Instruction& instruction) {
  const std::optional<int> shift = shift_of_thread(&instruction);
  if (!shift) return false;
  if (*shift >= 5) return true;
  if (instruction.getOpcode() != llvm::Instruction::And) return false;
  const auto* mask = llvm::dyn_cast<llvm::ConstantInt>(instruction.getOperand(1));
  return mask != nullptr && static_cast<int>(mask->getValue().countr_zero()) + *shift >= 5;
}

// A comparison of %tid.x with a multiple of 32: the optimiser makes it of `warp index == constant`.
bool is_warp_comparison(const llvm::Instruction& instruction) {
  const auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&instruction);
  if (compare == nullptr) return false;
  const auto* bound = llvm::dyn_cast<llvm::ConstantInt>(compare->getOperand(1));
  if (bound == nullptr || intrinsic_of(compare->getOperand(0)) != llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x)
    return false;
  if (compare->getPredicate() == llvm::CmpInst::ICMP_ULT) return bound->getZExtValue() % 32 == 0;
  if (compare->getPredicate() == llvm::CmpInst::ICMP_UGT) return bound->getZExtValue() % 32 == 31;
  return false;
}

bool is_uniform_collective(const llvm::Instruction& instruction) {
  switch (intrinsic_of(&instruction)) {
    case llvm::Intrinsic::nvvm_vote_all_sync:
    case llvm::Intrinsic::nvvm_vote_any_sync:
    case llvm::Intrinsic::nvvm_vote_ballot_sync:
    case llvm::Intrinsic::nvvm_match_all_sync_i32p:
    case llvm::Intrinsic::nvvm_redux_sync_add:
    case llvm::Intrinsic::nvvm_redux_sync_umin:
    case llvm::Intrinsic::nvvm_redux_sync_umax:
    case llvm::Intrinsic::nvvm_redux_sync_and:
    case llvm::Intrinsic::nvvm_redux_sync_or:
    case llvm::Intrinsic::nvvm_redux_sync_xor:
      return true;
    default:
      // A shuffle that reads one lane. The trace marks it, since the lane need not be a constant.
      return instruction.getMetadata(kWarpUniform) != nullptr;
  }
}

bool is_divergent_source(const llvm::Instruction& instruction) {
  if (llvm::isa<llvm::AllocaInst>(instruction)) return true;
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
    return !load->hasMetadata(llvm::LLVMContext::MD_invariant_load);
  }
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  if (call == nullptr) return false;
  if (call->isInlineAsm()) return !call->doesNotAccessMemory();
  switch (intrinsic_of(call)) {
    case llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x:
    case llvm::Intrinsic::nvvm_read_ptx_sreg_laneid:
    case llvm::Intrinsic::nvvm_read_ptx_sreg_lanemask_lt:
    case llvm::Intrinsic::nvvm_read_ptx_sreg_clock64:
      return true;
    default:
      return false;
  }
}

// The DSL's rates, in the interface that LLVM's analysis queries.
class WarpRates : public llvm::TargetTransformInfoImplCRTPBase<WarpRates> {
 public:
  explicit WarpRates(const llvm::DataLayout& layout) : TargetTransformInfoImplCRTPBase(layout) {}

  bool hasBranchDivergence(const llvm::Function*) const { return true; }
  bool isSourceOfDivergence(const llvm::Value* value) const {
    const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
    return instruction != nullptr && is_divergent_source(*instruction);
  }
  bool isAlwaysUniform(const llvm::Value* value) const {
    const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
    return instruction != nullptr &&
           (is_uniform_collective(*instruction) || is_warp_index(*instruction) || is_warp_comparison(*instruction));
  }
};

}  // namespace

void mark_uniform_branches(llvm::Function& function) {
  llvm::FunctionAnalysisManager analyses;
  analyses.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
  analyses.registerPass([] { return llvm::DominatorTreeAnalysis(); });
  analyses.registerPass([] { return llvm::CycleAnalysis(); });
  analyses.registerPass([] { return llvm::UniformityInfoAnalysis(); });
  analyses.registerPass([] {
    return llvm::TargetIRAnalysis(
        [](const llvm::Function& of) { return llvm::TargetTransformInfo(WarpRates(of.getParent()->getDataLayout())); });
  });
  llvm::UniformityInfo& uniformity = analyses.getResult<llvm::UniformityInfoAnalysis>(function);
  for (llvm::BasicBlock& block : function) {
    auto* branch = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
    if (branch == nullptr || !branch->isConditional() || uniformity.hasDivergentTerminator(block)) continue;
    const llvm::DILocation* at = branch->getDebugLoc();
    if (at == nullptr) continue;
    branch->setDebugLoc(llvm::DILocation::get(function.getContext(), at->getLine(), at->getColumn() + kUniformColumn,
                                              at->getScope(), at->getInlinedAt()));
  }
}

}  // namespace ptxkit::dsl
