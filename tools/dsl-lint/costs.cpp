#include "tools/dsl-lint/costs.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
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

constexpr std::string_view kItemCount = "item_count";
constexpr uint64_t kAddressBytes = 8;

bool is_dsl(const clang::NamedDecl* decl, llvm::StringRef name) {
  return decl != nullptr && decl->getName() == name &&
         llvm::StringRef(decl->getQualifiedNameAsString()).starts_with("ptxkit::dsl::");
}

// The text of a dsl::Name.
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

// Every expression of one kind below `stmt`.
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

// A dsl::SizeExpr: terms of N and M, and bytes.
struct Size {
  struct Term {
    char variable;
    uint64_t times, over;
  };
  std::vector<Term> terms;
  uint64_t plus = 0;
};

std::string text_of(const Size& size) {
  std::string text;
  for (const auto& [variable, times, over] : size.terms) {
    text += (text.empty() ? "" : "+") + std::string(1, variable);
    if (over > 1) text += "/" + std::to_string(over);
    if (times > 1) text += "*" + std::to_string(times);
  }
  if (size.plus != 0) text += (text.empty() ? "" : "+") + std::to_string(size.plus);
  return text.empty() ? "0" : text;
}

// Collects the memory that one kernel declares and uses, in all functions outside of the DSL that its body reaches.
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
    } else if (callee->getIdentifier() != nullptr && is_dsl(callee, "within") && call->getNumArgs() != 0) {
      if (const auto* member = llvm::dyn_cast<clang::CXXMemberCallExpr>(call)) object_of_parameter(*member);
    } else if (!llvm::StringRef(callee->getQualifiedNameAsString()).starts_with("ptxkit::dsl::")) {
      for (unsigned i = 0; i < std::min(call->getNumArgs(), callee->getNumParams()); ++i) {
        if (const auto value = number(call->getArg(i))) known_[callee->getParamDecl(i)] = *value;
        if (const auto value = size(call->getArg(i))) known_sizes_[callee->getParamDecl(i)] = *value;
      }
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
    if (is_dsl(record, "Buffer") && list->isSemanticForm() && list->getNumInits() == 2) {
      buffer(list->getInit(0), size(list->getInit(1)));
    }
    if (is_dsl(record, "Budget") && list->isSemanticForm()) budget(*record, *list);
    return true;
  }

  // Matches for (name : {"src_offsets", "dst_offsets"}) buffers.push_back({name, ...})
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

  // By name: the bytes of an element; the declared cost, absent if it is not understood; the elements that the body
  // states for an item; and bytes.
  std::map<std::string, uint64_t> pointers;
  std::map<std::string, std::optional<Size>> buffers;
  std::map<std::string, uint64_t> elements_an_item;
  std::map<std::string, uint64_t> shared;
  uint64_t shared_budget = 0;

 private:
  void body_of_kernel(const clang::CXXRecordDecl* record) {
    if (record == nullptr) return;
    for (const clang::CXXMethodDecl* method : record->methods()) {
      if (method->getOverloadedOperator() != clang::OO_Call) continue;
      for (const clang::ParmVarDecl* parameter : method->parameters()) parameter_of_kernel(*parameter);
      follow(method);
    }
  }

  // The Arg type of an expression; nullptr for every other type.
  static const clang::ClassTemplateSpecializationDecl* arg_of(clang::QualType type) {
    const auto* arg = llvm::dyn_cast_or_null<clang::ClassTemplateSpecializationDecl>(
        type.getNonReferenceType()->getAsCXXRecordDecl());
    return is_dsl(arg, "Arg") ? arg : nullptr;
  }
  static std::string name_of_arg(const clang::Expr& expression) {
    const auto* arg = arg_of(expression.IgnoreParenImpCasts()->getType());
    return arg == nullptr ? std::string() : text_of(arg->getTemplateArgs()[0]);
  }

  void parameter_of_kernel(const clang::ParmVarDecl& parameter) {
    const auto* arg = arg_of(parameter.getType());
    if (arg == nullptr) return;
    const auto* type = llvm::dyn_cast_or_null<clang::ClassTemplateSpecializationDecl>(
        arg->getTemplateArgs()[1].getAsType()->getAsCXXRecordDecl());
    if (!is_dsl(type, "Ptr") && !is_dsl(type, "Span")) return;
    pointers[text_of(arg->getTemplateArgs()[0])] =
        static_cast<uint64_t>(context_.getTypeSizeInChars(type->getTemplateArgs()[1].getAsType()).getQuantity());
  }

  // Matches parameter.within(item_count), an element for each item, and parameter.at(...).within(constant), that many
  // elements.
  void object_of_parameter(const clang::CXXMemberCallExpr& within) {
    const clang::Expr& object = *within.getImplicitObjectArgument()->IgnoreParenImpCasts();
    if (const std::string name = name_of_arg(object); !name.empty()) {
      if (name_of_arg(*within.getArg(0)) == kItemCount) elements_an_item[name] = 1;
      return;
    }
    const auto* at = llvm::dyn_cast<clang::CXXMemberCallExpr>(object.IgnoreImplicit());
    if (at == nullptr || !is_dsl(at->getMethodDecl(), "at")) return;
    const std::string name = name_of_arg(*at->getImplicitObjectArgument());
    const auto count = number(within.getArg(0));
    if (!name.empty() && count) elements_an_item[name] = *count;
  }

  // Matches shared<Element, Count, Align>("name"). An array begins at a multiple of Align. A call without a literal, in
  // a class that is told the names of its arrays, is an array of its own in each instantiation.
  void shared_array(const clang::CallExpr& call, const clang::FunctionDecl& callee) {
    const auto* arguments = callee.getTemplateSpecializationArgs();
    const auto names = all_below<clang::StringLiteral>(call.getNumArgs() == 0 ? nullptr : call.getArg(0));
    if (arguments == nullptr || arguments->size() < 2) return;
    const auto element = context_.getTypeSizeInChars((*arguments)[0].getAsType()).getQuantity();
    const std::string name =
        names.empty() ? std::to_string(reinterpret_cast<uintptr_t>(&call)) : names[0]->getString().str();
    shared[name] = static_cast<uint64_t>(element) * (*arguments)[1].getAsIntegral().getZExtValue();
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

  void buffer(const clang::Expr* name, const std::optional<Size>& size) {
    for (const auto* literal : all_below<clang::StringLiteral>(name)) buffers[literal->getString().str()] = size;
    for (const auto* variable : all_below<clang::DeclRefExpr>(name)) {
      const auto found = names_of_.find(variable->getDecl());
      if (found == names_of_.end()) continue;
      for (const std::string& one : found->second) buffers[one] = size;
    }
  }

  // The value of a constant expression, or of one made of parameters whose arguments are known.
  std::optional<uint64_t> number(const clang::Expr* expression) const {
    expression = expression->IgnoreParenImpCasts();
    clang::Expr::EvalResult value;
    if (!expression->isValueDependent() && expression->getType()->isIntegralOrEnumerationType() &&
        expression->EvaluateAsInt(value, context_)) {
      return value.Val.getInt().getZExtValue();
    }
    if (const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(expression)) {
      const auto found = known_.find(name->getDecl());
      return found == known_.end() ? std::nullopt : std::optional(found->second);
    }
    const auto* operation = llvm::dyn_cast<clang::BinaryOperator>(expression);
    if (operation == nullptr) return std::nullopt;
    const auto left = number(operation->getLHS()), right = number(operation->getRHS());
    if (!left || !right) return std::nullopt;
    switch (operation->getOpcode()) {
      case clang::BO_Mul:
        return *left * *right;
      case clang::BO_Add:
        return *left + *right;
      case clang::BO_Div:
        return *right == 0 ? std::nullopt : std::optional(*left / *right);
      default:
        return std::nullopt;
    }
  }

  // The value of a constant size, or of a parameter whose argument is known.
  std::optional<Size> size(const clang::Expr* expression) const {
    if (!is_dsl(expression->getType().getNonReferenceType()->getAsCXXRecordDecl(), "SizeExpr")) return std::nullopt;
    for (const auto* name : all_below<clang::DeclRefExpr>(expression)) {
      const auto found = known_sizes_.find(name->getDecl());
      if (found != known_sizes_.end()) return found->second;
    }
    clang::Expr::EvalResult value;
    if (expression->isValueDependent() || !expression->EvaluateAsRValue(value, context_)) return std::nullopt;
    const clang::APValue* found = &value.Val;
    // A reference to a constant evaluates to the constant's address.
    if (found->isLValue()) {
      const auto* variable = found->getLValueBase().dyn_cast<const clang::ValueDecl*>();
      const auto* constant = llvm::dyn_cast_or_null<clang::VarDecl>(variable);
      found = constant == nullptr ? nullptr : constant->evaluateValue();
    }
    if (found == nullptr || !found->isStruct() || found->getStructNumFields() != 2) return std::nullopt;
    const clang::APValue& terms = found->getStructField(0);
    Size size{{}, found->getStructField(1).getInt().getZExtValue()};
    for (unsigned i = 0; i < terms.getArrayInitializedElts(); ++i) {
      const clang::APValue& term = terms.getArrayInitializedElt(i);
      const auto field = [&](unsigned of) { return term.getStructField(of).getInt().getZExtValue(); };
      if (field(1) != 0) size.terms.push_back({static_cast<char>(field(0)), field(1), field(2)});
    }
    return size;
  }

  clang::ASTContext& context_;
  std::set<const clang::FunctionDecl*> visited_;
  // the strings over which a loop's variable iterates
  std::map<const clang::ValueDecl*, std::set<std::string>> names_of_;
  // Known arguments of the functions that were followed.
  std::map<const clang::ValueDecl*, uint64_t> known_;
  std::map<const clang::ValueDecl*, Size> known_sizes_;
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
    for (const auto& [name, element_bytes] : memory.pointers) {
      if (!memory.buffers.contains(name)) report("no buffer of its cost is the parameter " + name);
    }
    for (const auto& [name, size] : memory.buffers) {
      if (name.ends_with("[]")) {
        const auto array = memory.pointers.find(name.substr(0, name.size() - 2));
        if (array == memory.pointers.end() || array->second != kAddressBytes)
          report("the buffer " + name + " of its cost is behind no array of addresses");
      } else if (!memory.pointers.contains(name)) {
        report("the buffer " + name + " of its cost is no parameter");
      }
    }
    check_sizes(memory, report);
    if (memory.pointers.empty()) report("found no parameter that points to memory");
    uint64_t shared_bytes = 0;
    for (const auto& [name, bytes] : memory.shared) shared_bytes += bytes;
    if (shared_bytes != memory.shared_budget) {
      report("its shared arrays take " + std::to_string(shared_bytes) + " bytes, its budget has " +
             std::to_string(memory.shared_budget));
    }
    return true;
  }

 private:
  // A buffer whose elements in an item are stated must declare exactly those. The others hold whole elements.
  template <class Report>
  static void check_sizes(const KernelMemory& memory, const Report& report) {
    for (const auto& [name, size] : memory.buffers) {
      if (!size) {
        report("the size of the buffer " + name + " is none that this tool understands");
        continue;
      }
      const auto pointer = memory.pointers.find(name);
      if (pointer == memory.pointers.end()) continue;
      const uint64_t element_bytes = pointer->second;
      const auto count = memory.elements_an_item.find(name);
      if (count != memory.elements_an_item.end()) {
        if (!size->terms.empty() || size->plus != count->second * element_bytes) {
          report("the buffer " + name + " of " + text_of(*size) + " bytes has not " + std::to_string(count->second) +
                 " elements of " + std::to_string(element_bytes) + " bytes an item");
        }
        continue;
      }
      const bool is_whole =
          size->plus % element_bytes == 0 &&
          std::ranges::all_of(size->terms, [&](const Size::Term& term) { return term.times % element_bytes == 0; });
      if (!is_whole) {
        report("the buffer " + name + " of " + text_of(*size) + " bytes is no whole number of elements of " +
               std::to_string(element_bytes));
      }
    }
  }

  clang::ASTContext& context_;
  CostFindings& findings_;
};

}  // namespace

void check_costs(clang::ASTContext& context, CostFindings& findings) {
  // Declarations that only a prelude holds are not loaded: loading them costs as much as reading the headers again.
  for (clang::Decl* decl : context.getTranslationUnitDecl()->noload_decls()) {
    if (context.getSourceManager().isInMainFile(decl->getLocation())) FindKernels(context, findings).TraverseDecl(decl);
  }
}

}  // namespace ptxkit::lint
