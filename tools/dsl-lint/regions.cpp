#include "tools/dsl-lint/regions.hpp"

#include <algorithm>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ParentMapContext.h>
#include <clang/AST/RecursiveASTVisitor.h>
#include <clang/Basic/SourceManager.h>
#include <llvm/Support/raw_ostream.h>

namespace ptxkit::lint {
namespace {

bool is_named(const clang::NamedDecl* decl, llvm::StringRef qualified) {
  return decl != nullptr && decl->getQualifiedNameAsString() == qualified;
}
bool is_region(const clang::RecordDecl* record) { return is_named(record, "ptxkit::codec::Region"); }

bool is_size(const clang::ValueDecl* member) {
  const auto* field = llvm::dyn_cast<clang::FieldDecl>(member);
  return field != nullptr && field->getName() == "size_bytes" && is_region(field->getParent());
}
const clang::MemberExpr* size_of_region(const clang::Expr* expression) {
  const auto* member = llvm::dyn_cast<clang::MemberExpr>(expression->IgnoreParenImpCasts());
  return member != nullptr && is_size(member->getMemberDecl()) ? member : nullptr;
}

// The expression below conversions and temporaries.
const clang::Expr* core(const clang::Expr* expression) {
  for (;;) {
    const clang::Expr* const inner = expression->IgnoreUnlessSpelledInSource();
    const auto* construction = llvm::dyn_cast<clang::CXXConstructExpr>(inner);
    if (construction == nullptr || construction->getNumArgs() != 1) return inner;
    expression = construction->getArg(0);
  }
}
bool is_call_of(const clang::Expr* expression, llvm::StringRef qualified) {
  const auto* call = llvm::dyn_cast<clang::CallExpr>(core(expression));
  return call != nullptr && is_named(call->getDirectCallee(), qualified);
}

// Whether an expression is a valid size of a region: the result of DeclaredCosts::bytes, or the maximum of such
// results.
bool is_declared(const clang::Expr* expression) {
  expression = core(expression);
  if (size_of_region(expression) != nullptr) return true;
  const auto* call = llvm::dyn_cast<clang::CallExpr>(expression);
  if (call == nullptr) return false;
  if (is_named(call->getDirectCallee(), "std::max")) {
    return std::all_of(call->arg_begin(), call->arg_end(), is_declared);
  }
  const auto* content = llvm::dyn_cast<clang::CXXOperatorCallExpr>(call);
  if (content == nullptr || content->getOperator() != clang::OO_Star) return false;
  const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(core(content->getArg(0)));
  const auto* variable = name == nullptr ? nullptr : llvm::dyn_cast<clang::VarDecl>(name->getDecl());
  return variable != nullptr && variable->getType().isConstQualified() && variable->hasInit() &&
         is_call_of(variable->getInit(), "ptxkit::codec::DeclaredCosts::bytes");
}

// Matches return tl::unexpected(...)
bool makes_unexpected(const clang::Stmt* statement) {
  const auto* made = llvm::dyn_cast<clang::CXXConstructExpr>(statement);
  if (made != nullptr && is_named(made->getConstructor()->getParent(), "tl::unexpected")) return true;
  return std::any_of(statement->child_begin(), statement->child_end(),
                     [](const clang::Stmt* child) { return child != nullptr && makes_unexpected(child); });
}

class FindSizes : public clang::RecursiveASTVisitor<FindSizes> {
 public:
  FindSizes(clang::ASTContext& context, RegionFindings& findings) : context_(context), findings_(findings) {}
  bool shouldVisitTemplateInstantiations() const { return true; }
  bool shouldVisitImplicitCode() const { return true; }

  bool VisitInitListExpr(clang::InitListExpr* list) {
    const clang::RecordDecl* const record = list->getType()->getAsRecordDecl();
    if (!list->isSemanticForm() || !is_region(record)) return true;
    for (const clang::FieldDecl* field : record->fields()) {
      if (!is_size(field) || field->getFieldIndex() >= list->getNumInits()) continue;
      ++findings_.size_count;
      const clang::Expr* const size = list->getInit(field->getFieldIndex());
      const bool is_left_out = llvm::isa<clang::CXXDefaultInitExpr, clang::ImplicitValueInitExpr>(size);
      if (!is_left_out && !is_declared(size)) report(size->getExprLoc());
    }
    return true;
  }
  bool VisitMemberExpr(clang::MemberExpr* member) {
    if (!is_size(member->getMemberDecl())) return true;
    ++findings_.size_count;
    for (const clang::DynTypedNode& parent : context_.getParents(*member)) {
      if (const auto* cast = parent.get<clang::ImplicitCastExpr>()) {
        if (cast->getCastKind() == clang::CK_LValueToRValue || cast->getType().isConstQualified()) continue;
      }
      const auto* change = parent.get<clang::BinaryOperator>();
      if (change != nullptr && change->getOpcode() == clang::BO_Assign && change->getLHS() == member &&
          is_declared(change->getRHS())) {
        continue;
      }
      // Only read, through a reference to const.
      if (member->getType().isConstQualified() || member->getBase()->getType().isConstQualified()) continue;
      report(member->getMemberLoc());
    }
    return true;
  }
  // The function that computes the sizes must return the value of a declaration unchanged, or an error.
  bool VisitReturnStmt(clang::ReturnStmt* statement) {
    if (!is_in_bytes_ || statement->getRetValue() == nullptr) return true;
    ++findings_.size_count;
    const clang::Expr* const value = statement->getRetValue();
    if (!is_call_of(value, "ptxkit::fail") && !makes_unexpected(value) &&
        !is_call_of(value, "ptxkit::kernels::CostExpression::evaluate"))
      report(statement->getReturnLoc());
    return true;
  }
  bool TraverseCXXMethodDecl(clang::CXXMethodDecl* method) {
    is_in_bytes_ = is_named(method, "ptxkit::codec::DeclaredCosts::bytes");
    const bool goes_on = RecursiveASTVisitor::TraverseCXXMethodDecl(method);
    is_in_bytes_ = false;
    return goes_on;
  }

 private:
  void report(clang::SourceLocation at) {
    if (!reported_.insert(at).second) return;  // a braced list has two forms in the tree
    const auto& sources = context_.getSourceManager();
    llvm::outs() << sources.getExpansionLoc(at).printToString(sources)
                 << ": the size of a region is not what a kernel declares; name the region, and let "
                    "DeclaredCosts::regions size it by the calls that take it\n";
    ++findings_.count;
  }

  clang::ASTContext& context_;
  RegionFindings& findings_;
  bool is_in_bytes_ = false;
  std::set<clang::SourceLocation> reported_;
};

}  // namespace

void check_regions(clang::ASTContext& context, RegionFindings& findings) {
  for (clang::Decl* decl : context.getTranslationUnitDecl()->decls()) {
    if (context.getSourceManager().isInMainFile(decl->getLocation())) FindSizes(context, findings).TraverseDecl(decl);
  }
}

}  // namespace ptxkit::lint
