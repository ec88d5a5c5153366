#include "tools/dsl-lint/costs.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/RecursiveASTVisitor.h>
#include <clang/Basic/SourceManager.h>
#include <llvm/Support/raw_ostream.h>

namespace ptxkit::lint {
namespace {

constexpr std::string_view kRest = "_rows";

bool is_dsl(const clang::NamedDecl* decl, llvm::StringRef name) {
  return decl != nullptr && decl->getName() == name &&
         llvm::StringRef(decl->getQualifiedNameAsString()).starts_with("ptxkit::dsl::");
}

// The characters of a dsl::Name.
std::string text_of(const clang::TemplateArgument& argument) {
  const clang::APValue* value = nullptr;
  if (argument.getKind() == clang::TemplateArgument::StructuralValue) value = &argument.getAsStructuralValue();
  if (argument.getKind() == clang::TemplateArgument::Declaration) {
    const auto* object = llvm::dyn_cast<clang::TemplateParamObjectDecl>(argument.getAsDecl());
    if (object != nullptr) value = &object->getValue();
  }
  if (value == nullptr || !value->isStruct() || value->getStructNumFields() != 1) return {};
  const clang::APValue& characters = value->getStructField(0);
  std::string text;
  for (unsigned i = 0; characters.isArray() && i < characters.getArrayInitializedElts(); ++i) {
    const auto character = static_cast<char>(characters.getArrayInitializedElt(i).getInt().getExtValue());
    if (character != '\0') text += character;
  }
  return text;
}

// Every expression of a kind below `stmt`.
template <class Kind>
void collect(const clang::Stmt* stmt, std::vector<const Kind*>& into) {
  if (stmt == nullptr) return;
  if (const auto* found = llvm::dyn_cast<Kind>(stmt)) into.push_back(found);
  for (const clang::Stmt* child : stmt->children()) collect(child, into);
}

template <class Kind>
std::vector<const Kind*> all_below(const clang::Stmt* stmt) {
  std::vector<const Kind*> found;
  collect(stmt, found);
  return found;
}

// What one kernel declares and takes, in everything that its function reaches outside of the DSL.
class KernelMemory : public clang::RecursiveASTVisitor<KernelMemory> {
 public:
  explicit KernelMemory(clang::ASTContext& context) : context_(context) {}
  bool shouldVisitTemplateInstantiations() const { return true; }
  bool shouldVisitImplicitCode() const { return true; }

  void follow(const clang::FunctionDecl* function) {
    const clang::FunctionDecl* body = nullptr;
    if (function == nullptr || !function->hasBody(body)) return;
    if (function->isInStdNamespace() || function->isDependentContext()) return;
    if (!visited_.insert(body->getCanonicalDecl()).second) return;
    if (const auto* constructor = llvm::dyn_cast<clang::CXXConstructorDecl>(body)) {
      for (const clang::CXXCtorInitializer* member : constructor->inits()) TraverseStmt(member->getInit());
    }
    TraverseStmt(body->getBody());
  }

  bool VisitCallExpr(clang::CallExpr* call) {
    const clang::FunctionDecl* const callee = call->getDirectCallee();
    if (callee == nullptr) return true;
    if (callee->getIdentifier() != nullptr && is_dsl(callee, "shared")) {
      shared_array(*call, *callee);
    } else if (callee->getIdentifier() != nullptr && is_dsl(callee, "define") && call->getNumArgs() >= 2) {
      body_of_kernel(call->getArg(1)->getType()->getAsCXXRecordDecl());
    } else if (!llvm::StringRef(callee->getQualifiedNameAsString()).starts_with("ptxkit::dsl::")) {
      follow(callee);
    }
    return true;
  }
  bool VisitCXXConstructExpr(clang::CXXConstructExpr* construction) {
    follow(construction->getConstructor());
    return true;
  }
  bool VisitLambdaExpr(clang::LambdaExpr* lambda) {
    if (const auto* pattern = lambda->getLambdaClass()->getDependentLambdaCallOperator()) {
      for (const clang::FunctionDecl* made : pattern->specializations()) follow(made);
    }
    return true;
  }
  bool VisitInitListExpr(clang::InitListExpr* list) {
    const auto* record = list->getType()->getAsCXXRecordDecl();
    if (is_dsl(record, "Buffer") && list->getNumInits() != 0) buffer(list->getInit(0));
    if (is_dsl(record, "Budget") && list->isSemanticForm()) budget(*record, *list);
    return true;
  }

  // for (name : {"src_offsets", "dst_offsets"}) buffers.push_back({name, ...})
  bool VisitCXXForRangeStmt(clang::CXXForRangeStmt* loop) {
    for (const auto* literal : all_below<clang::StringLiteral>(loop->getRangeInit())) {
      names_of_[loop->getLoopVariable()].insert(literal->getString().str());
    }
    return true;
  }
  bool VisitBinaryOperator(clang::BinaryOperator* assignment) {
    const auto* member = llvm::dyn_cast<clang::MemberExpr>(assignment->getLHS());
    if (assignment->getOpcode() == clang::BO_Assign && member != nullptr) {
      const auto* field = llvm::dyn_cast<clang::FieldDecl>(member->getMemberDecl());
      if (field != nullptr && field->getName() == "shared_bytes") take_budget(*assignment->getRHS());
    }
    return true;
  }

  std::set<std::string> pointers, buffers;
  std::map<std::string, std::uint64_t> shared;  // by name
  std::uint64_t shared_budget = 0;

 private:
  void body_of_kernel(const clang::CXXRecordDecl* record) {
    if (record == nullptr) return;
    for (const clang::CXXMethodDecl* method : record->methods()) {
      if (method->getOverloadedOperator() != clang::OO_Call) continue;
      for (const clang::ParmVarDecl* parameter : method->parameters()) parameter_of_kernel(*parameter);
      follow(method);
    }
  }

  void parameter_of_kernel(const clang::ParmVarDecl& parameter) {
    const auto* arg = llvm::dyn_cast_or_null<clang::ClassTemplateSpecializationDecl>(
        parameter.getType().getNonReferenceType()->getAsCXXRecordDecl());
    if (!is_dsl(arg, "Arg")) return;
    const auto* type = arg->getTemplateArgs()[1].getAsType()->getAsCXXRecordDecl();
    if (is_dsl(type, "Ptr") || is_dsl(type, "Span")) pointers.insert(text_of(arg->getTemplateArgs()[0]));
  }

  // shared<Element, Count, Align>("name"); an array begins at a multiple of Align.
  void shared_array(const clang::CallExpr& call, const clang::FunctionDecl& callee) {
    const auto* arguments = callee.getTemplateSpecializationArgs();
    const auto names = all_below<clang::StringLiteral>(call.getNumArgs() == 0 ? nullptr : call.getArg(0));
    if (arguments == nullptr || names.empty() || arguments->size() < 2) return;
    const auto element = context_.getTypeSizeInChars((*arguments)[0].getAsType()).getQuantity();
    shared[names[0]->getString().str()] =
        static_cast<std::uint64_t>(element) * (*arguments)[1].getAsIntegral().getZExtValue();
  }

  void budget(const clang::CXXRecordDecl& record, const clang::InitListExpr& list) {
    unsigned index = 0;
    for (const clang::FieldDecl* field : record.fields()) {
      if (index == list.getNumInits()) return;
      const clang::Expr* const init = list.getInit(index++);
      if (field->getName() == "shared_bytes") take_budget(*init);
    }
  }
  void take_budget(const clang::Expr& bytes) {
    clang::Expr::EvalResult value;
    if (bytes.isValueDependent() || !bytes.EvaluateAsInt(value, context_)) return;
    shared_budget = std::max(shared_budget, value.Val.getInt().getZExtValue());
  }

  void buffer(const clang::Expr* name) {
    for (const auto* literal : all_below<clang::StringLiteral>(name)) buffers.insert(literal->getString().str());
    for (const auto* variable : all_below<clang::DeclRefExpr>(name)) {
      const auto found = names_of_.find(variable->getDecl());
      if (found != names_of_.end()) buffers.insert(found->second.begin(), found->second.end());
    }
  }

  clang::ASTContext& context_;
  std::set<const clang::FunctionDecl*> visited_;
  std::map<const clang::ValueDecl*, std::set<std::string>> names_of_;  // what a loop's variable goes through
};

class FindKernels : public clang::RecursiveASTVisitor<FindKernels> {
 public:
  FindKernels(clang::ASTContext& context, CostFindings& findings) : context_(context), findings_(findings) {}

  bool VisitFunctionDecl(clang::FunctionDecl* function) {
    const auto& sources = context_.getSourceManager();
    if (!function->isThisDeclarationADefinition() || function->getNumParams() != 0 || function->isDependentContext() ||
        !sources.isInMainFile(function->getLocation()) ||
        !is_dsl(function->getReturnType()->getAsCXXRecordDecl(), "KernelDefinition")) {
      return true;
    }
    KernelMemory memory(context_);
    memory.follow(function);
    ++findings_.kernel_count;
    const auto report = [&](const std::string& what) {
      llvm::outs() << function->getLocation().printToString(sources) << ": " << function->getName() << ": " << what
                   << "\n";
      ++findings_.count;
    };
    for (const std::string& name : memory.pointers) {
      if (!memory.buffers.contains(name)) report("no buffer of its cost is the parameter " + name);
    }
    for (const std::string& name : memory.buffers) {
      // "dst_rows": what dst takes beside the buffer dst, since a size is one term.
      const bool is_rest =
          name.ends_with(kRest) && memory.pointers.contains(name.substr(0, name.size() - kRest.size()));
      if (!is_rest && !memory.pointers.contains(name)) report("the buffer " + name + " of its cost is no parameter");
    }
    if (memory.pointers.empty()) report("found no parameter that points to memory");
    std::uint64_t shared_bytes = 0;
    for (const auto& [name, bytes] : memory.shared) shared_bytes += bytes;
    if (shared_bytes != memory.shared_budget) {
      report("its shared arrays take " + std::to_string(shared_bytes) + " bytes, its budget has " +
             std::to_string(memory.shared_budget));
    }
    return true;
  }

 private:
  clang::ASTContext& context_;
  CostFindings& findings_;
};

}  // namespace

void check_costs(clang::ASTContext& context, CostFindings& findings) {
  FindKernels(context, findings).TraverseDecl(context.getTranslationUnitDecl());
}

}  // namespace ptxkit::lint
