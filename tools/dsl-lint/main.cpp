// dsl-lint: checks of this project's own sources that the type system cannot make, on Clang's syntax tree.
//
//   dsl-lint -p BUILD --steady NAME… FILE…
//   dsl-lint -p BUILD --costs [--prelude HEADER] FILE…
//   dsl-lint -p BUILD --regions FILE…
//
// The prelude is a header that all files include first and that takes most of the time; it is parsed once.
//
// --steady: no function that the named functions reach may wait for a whole device. They must not allocate or release
// memory, create modules, streams or events, or query memory information. Functions are named with their scopes, as
// `CudaMachine::launch`. Calls are followed through lambdas and templates as far as bodies are in the file. A function
// whose body is in another file is judged by its name.
//
// --costs: the files define kernels. The memory that each declares is compared with what it uses (costs.hpp).
// --regions: the files launch kernels. Regions of device memory must have the sizes that kernels declare (regions.hpp).
//
// Exit code: 0 no finding; 1 findings; 2 wrong usage, a file that does not compile, no kernel or region in the files,
// or a name that no file defines.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <clang/AST/RecursiveASTVisitor.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendAction.h>
#include <clang/Frontend/FrontendActions.h>
#include <clang/Tooling/CommonOptionsParser.h>
#include <clang/Tooling/Tooling.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/FileUtilities.h>
#include <llvm/Support/raw_ostream.h>

#include "support/program.hpp"
#include "tools/dsl-lint/costs.hpp"
#include "tools/dsl-lint/regions.hpp"

namespace {

llvm::cl::OptionCategory category("dsl-lint");
llvm::cl::list<std::string> steady("steady", llvm::cl::desc("a function of the steady state, with its scopes"),
                                   llvm::cl::value_desc("NAME"), llvm::cl::cat(category));
llvm::cl::opt<bool> costs("costs", llvm::cl::desc("compare the kernels' costs and budgets with their bodies"),
                          llvm::cl::cat(category));
llvm::cl::opt<bool> regions("regions", llvm::cl::desc("find sizes of regions that no kernel declares"),
                            llvm::cl::cat(category));
llvm::cl::opt<std::string> prelude("prelude", llvm::cl::desc("a header that every file begins with, read once"),
                                   llvm::cl::value_desc("HEADER"), llvm::cl::cat(category));

// Members of driver::Api that wait for the device, or for more than one stream.
const std::set<std::string> kDeviceWideMembers = {"mem_get_info",           "mem_alloc",     "mem_free",
                                                  "mem_host_alloc",         "mem_free_host", "module_load_data_ex",
                                                  "module_unload",          "stream_create", "stream_destroy",
                                                  "event_create",           "event_destroy", "primary_context_retain",
                                                  "primary_context_release"};
// Functions of the driver layer that call one of them and have their body in another file.
const std::set<std::string> kDeviceWideFunctions = {
    "DeviceMemory::allocate", "PinnedMemory::allocate", "Context::free_memory_bytes",
    "Context::create",        "Kernel::load",           "Kernel::load_unverified",
    "Stream::create",         "Event::create",          "Event::create_untimed"};

bool ends_with_name(const std::string& qualified, const std::string& name) {
  if (!llvm::StringRef(qualified).ends_with(name)) return false;
  return qualified.size() == name.size() || llvm::StringRef(qualified).drop_back(name.size()).ends_with("::");
}

struct Findings {
  std::set<std::string> seen_roots;
  unsigned count = 0;
  ptxkit::lint::CostFindings costs;
  ptxkit::lint::RegionFindings regions;
};

// Collects the forbidden calls that the body of a function reaches.
class Reach : public clang::RecursiveASTVisitor<Reach> {
 public:
  Reach(clang::ASTContext& context, std::string root, Findings& findings)
      : context_(context), root_(std::move(root)), findings_(findings) {}
  bool shouldVisitTemplateInstantiations() const { return true; }
  bool shouldVisitImplicitCode() const { return true; }

  void follow(const clang::FunctionDecl* function) {
    const clang::FunctionDecl* body = nullptr;
    if (function == nullptr) return;
    if (!function->hasBody(body)) return;
    if (!visited_.insert(body->getCanonicalDecl()).second) return;
    TraverseStmt(body->getBody());
  }

  bool VisitMemberExpr(clang::MemberExpr* member) {
    const auto* field = llvm::dyn_cast<clang::FieldDecl>(member->getMemberDecl());
    if (field != nullptr && field->getParent()->getName() == "Api" &&
        kDeviceWideMembers.contains(field->getNameAsString())) {
      report(member->getExprLoc(), "driver call " + field->getNameAsString());
    }
    return true;
  }
  bool VisitCallExpr(clang::CallExpr* call) {
    call_to(call->getDirectCallee(), call->getExprLoc());
    return true;
  }
  bool VisitCXXConstructExpr(clang::CXXConstructExpr* construction) {
    follow(construction->getConstructor());
    return true;
  }

 private:
  void call_to(const clang::FunctionDecl* function, clang::SourceLocation at) {
    if (function == nullptr) return;
    const std::string name = function->getQualifiedNameAsString();
    for (const std::string& bad : kDeviceWideFunctions) {
      if (ends_with_name(name, bad)) return report(at, "call of " + name);
    }
    // The standard library never waits for a device.
    if (!function->isInStdNamespace()) follow(function);
  }

  void report(clang::SourceLocation at, const std::string& what) {
    at = context_.getSourceManager().getExpansionLoc(at);
    llvm::outs() << at.printToString(context_.getSourceManager()) << ": " << what << " waits for the whole device, and "
                 << root_ << " is of the steady state\n";
    ++findings_.count;
  }

  clang::ASTContext& context_;
  std::string root_;
  Findings& findings_;
  std::set<const clang::FunctionDecl*> visited_;
};

class FindRoots : public clang::RecursiveASTVisitor<FindRoots> {
 public:
  FindRoots(clang::ASTContext& context, Findings& findings) : context_(context), findings_(findings) {}
  bool VisitFunctionDecl(clang::FunctionDecl* function) {
    if (!function->isThisDeclarationADefinition()) return true;
    std::string name = function->getQualifiedNameAsString();
    for (size_t at = name.find("(anonymous namespace)::"); at != std::string::npos;
         at = name.find("(anonymous namespace)::")) {
      name.erase(at, sizeof "(anonymous namespace)::" - 1);
    }
    for (const std::string& wanted : steady) {
      if (!ends_with_name(name, wanted)) continue;
      findings_.seen_roots.insert(wanted);
      Reach(context_, wanted, findings_).follow(function);
    }
    return true;
  }

 private:
  clang::ASTContext& context_;
  Findings& findings_;
};

class Consumer : public clang::ASTConsumer {
 public:
  explicit Consumer(Findings& findings) : findings_(findings) {}
  void HandleTranslationUnit(clang::ASTContext& context) override {
    if (!steady.empty()) FindRoots(context, findings_).TraverseDecl(context.getTranslationUnitDecl());
    if (costs) ptxkit::lint::check_costs(context, findings_.costs);
    if (regions) ptxkit::lint::check_regions(context, findings_.regions);
  }

 private:
  Findings& findings_;
};

class Action : public clang::ASTFrontendAction {
 public:
  explicit Action(Findings& findings) : findings_(findings) {}
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance&, llvm::StringRef) override {
    return std::make_unique<Consumer>(findings_);
  }

 private:
  Findings& findings_;
};

class Factory : public clang::tooling::FrontendActionFactory {
 public:
  explicit Factory(Findings& findings) : findings_(findings) {}
  std::unique_ptr<clang::FrontendAction> create() override { return std::make_unique<Action>(findings_); }

 private:
  Findings& findings_;
};

class PreludeFactory : public clang::tooling::FrontendActionFactory {
 public:
  explicit PreludeFactory(std::string output) : output_(std::move(output)) {}
  std::unique_ptr<clang::FrontendAction> create() override { return std::make_unique<clang::GeneratePCHAction>(); }
  bool runInvocation(std::shared_ptr<clang::CompilerInvocation> invocation, clang::FileManager* files,
                     std::shared_ptr<clang::PCHContainerOperations> operations,
                     clang::DiagnosticConsumer* consumer) override {
    invocation->getFrontendOpts().OutputFile = output_;
    return FrontendActionFactory::runInvocation(std::move(invocation), files, std::move(operations), consumer);
  }

 private:
  std::string output_;
};

// The sources are written for GCC; Clang's warnings about them are irrelevant here.
const clang::tooling::CommandLineArguments kFlags = {"-resource-dir=" PTXKIT_CLANG_RESOURCES, "-Wno-everything"};

clang::tooling::ArgumentsAdjuster appended(const clang::tooling::CommandLineArguments& flags) {
  return clang::tooling::getInsertArgumentAdjuster(flags, clang::tooling::ArgumentInsertPosition::END);
}

// Compiles the prelude to `output`, with the options of the first file.
bool precompile(clang::tooling::CommonOptionsParser& options, const std::string& output) {
  clang::tooling::ClangTool tool(options.getCompilations(), {options.getSourcePathList().front()});
  tool.appendArgumentsAdjuster([](clang::tooling::CommandLineArguments words, llvm::StringRef file) {
    std::erase(words, file.str());
    return words;
  });
  tool.appendArgumentsAdjuster(appended({"-fpch-instantiate-templates", "-xc++-header", prelude}));
  tool.appendArgumentsAdjuster(appended(kFlags));
  PreludeFactory factory(output);
  return tool.run(&factory) == 0;
}

}  // namespace

int main(int argc, const char** argv) {
  if (!ptxkit::open_standard_descriptors()) return 2;
  auto options = clang::tooling::CommonOptionsParser::create(argc, argv, category);
  if (!options) {
    llvm::errs() << llvm::toString(options.takeError());
    return 2;
  }
  clang::tooling::ClangTool tool(options->getCompilations(), options->getSourcePathList());
  tool.appendArgumentsAdjuster(appended(kFlags));
  llvm::SmallString<128> precompiled;
  llvm::FileRemover remover;
  if (!prelude.empty()) {
    bool is_read = !llvm::sys::fs::createTemporaryFile("dsl-lint", "pch", precompiled);
    remover.setFile(precompiled);
    is_read = is_read && precompile(*options, precompiled.str().str());
    if (!is_read) {
      llvm::errs() << "dsl-lint: no prelude of " << prelude << "\n";
      return 2;
    }
    tool.appendArgumentsAdjuster(appended({"-include-pch", precompiled.str().str()}));
  }
  Findings findings;
  Factory factory(findings);
  if (tool.run(&factory) != 0) return 2;
  bool is_complete = true;
  for (const std::string& wanted : steady) {
    if (findings.seen_roots.contains(wanted)) continue;
    llvm::errs() << "dsl-lint: no file defines " << wanted << "\n";
    is_complete = false;
  }
  if (costs && findings.costs.kernel_count == 0) {
    llvm::errs() << "dsl-lint: no file holds a kernel\n";
    is_complete = false;
  }
  if (regions && findings.regions.size_count == 0) {
    llvm::errs() << "dsl-lint: no file makes a region\n";
    is_complete = false;
  }
  return findings.count + findings.costs.count + findings.regions.count != 0 ? 1 : is_complete ? 0 : 2;
}
