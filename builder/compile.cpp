// From LLVM IR to the backend's text. The pipeline is LLVM's -O2 without the passes that trade registers for
// instruction-level parallelism. A warp hides latency behind other warps, and kernels have register budgets, so loops
// are unrolled only where the author asks for it and lanes are not vectorised.
#include <memory>
#include <string>

#include <llvm/ADT/SmallString.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include "builder/trace_state.hpp"
#include "support/check.hpp"

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace ptxkit::dsl {
namespace {

const llvm::Target& nvptx() {
  static const llvm::Target* target = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    // 32-bit addresses for shared and local memory. The backend has this as a command-line option only.
    const auto options = llvm::cl::getRegisteredOptions();
    const auto found = options.find("nvptx-short-ptr");
    PTXKIT_CHECK(found != options.end(), "LLVM 19 has -nvptx-short-ptr");
    static_cast<llvm::cl::opt<bool>*>(found->second)->setValue(true);
    std::string error;
    return llvm::TargetRegistry::lookupTarget("nvptx64-nvidia-cuda", error);
  }();
  PTXKIT_CHECK(target != nullptr, "this LLVM was built with the NVPTX backend");
  return *target;
}

// The oldest PTX version with every instruction that the DSL emits: redux.sync needs 7.0, sm_90 needs 7.8.
const char* ptx_version(unsigned sm) { return sm >= 90 ? "+ptx78" : "+ptx70"; }

}  // namespace

std::string compile(llvm::Module& module, const EmitOptions& options) {
  const std::unique_ptr<llvm::TargetMachine> machine(
      nvptx().createTargetMachine(module.getTargetTriple(), "sm_" + std::to_string(options.sm), ptx_version(options.sm),
                                  llvm::TargetOptions(), std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Default));
  PTXKIT_CHECK(module.getDataLayout() == machine->createDataLayout(), "the data layout is the backend's own");

  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = false;
  tuning.LoopInterleaving = false;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder passes(machine.get(), tuning);
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(components);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, components, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);

  for (llvm::Function& function : module) {
    if (options.uniform_branches && !function.isDeclaration()) mark_uniform_branches(function);
  }

  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager codegen;
  const bool unsupported = machine->addPassesToEmitFile(codegen, stream, nullptr, llvm::CodeGenFileType::AssemblyFile);
  PTXKIT_CHECK(!unsupported, "the NVPTX backend writes assembly");
  codegen.run(module);
  return std::string(text);
}

}  // namespace ptxkit::dsl
