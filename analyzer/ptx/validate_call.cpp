// Checks a call against the function, prototype or register that it names.
#include <vector>

#include <fmt/format.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/ptx/validate.hpp"

namespace ptxkit::ptx {

bool Validator::match_call(const Function& function, const Instruction& instruction, Failure& failure) const {
  const CallParts parts = call_parts(function, instruction);
  const Offset at = instruction.opcode_at;
  if (parts.target == nullptr) return failure.set(DiagnosticKind::operand_kind, at, "expected a function to call");
  const auto kind = parts.target->kind;
  if (kind == OperandKind::label || kind == OperandKind::text) return true;  // undeclared, already reported
  if (kind != OperandKind::function && kind != OperandKind::reg) {
    return failure.set(DiagnosticKind::operand_kind, parts.target->at,
                       fmt::format("expected a function or a register, found {}", describe(function, *parts.target)));
  }
  const std::vector<VariableId>* results = nullptr;
  const std::vector<VariableId>* parameters = nullptr;
  if (kind == OperandKind::function) {
    const Function& callee = module_.functions[parts.target->id];
    if (callee.is_entry) {
      // Only dynamic parallelism launches entries, through functions of its runtime library.
      return failure.set(DiagnosticKind::call_mismatch, parts.target->at, fmt::format("'{}' is an entry", callee.name));
    }
    results = &callee.results;
    parameters = &callee.parameters;
  } else if (parts.prototype == nullptr) {
    return failure.set(DiagnosticKind::call_mismatch, parts.target->at,
                       "a call through a register needs a prototype or a list of targets");
  }
  if (kind == OperandKind::reg && parts.prototype->kind == OperandKind::prototype) {
    const Table& prototype = function.tables[parts.prototype->id];
    if (prototype.kind == Table::Kind::call_prototype) {
      results = &prototype.results;
      parameters = &prototype.parameters;
    }
  }
  if (results == nullptr) return true;  // the prototype may follow later
  const auto count = [](const Operand* list) { return list == nullptr ? 0u : list->child_count; };
  const bool variadic = !parameters->empty() && module_.variables[parameters->back()].is_unsized;
  if (count(parts.results) != results->size()) {
    return failure.set(
        DiagnosticKind::call_mismatch, at,
        fmt::format("expected {} results of the called function, found {}", results->size(), count(parts.results)));
  }
  if (count(parts.arguments) != parameters->size() && !(variadic && count(parts.arguments) + 1 >= parameters->size())) {
    return failure.set(DiagnosticKind::call_mismatch, at,
                       fmt::format("expected {} arguments of the called function, found {}", parameters->size(),
                                   count(parts.arguments)));
  }
  const auto sizes_differ = [&](const Operand& list, const std::vector<VariableId>& declared) {
    const auto given = function.children(list);
    for (size_t i = 0; i < given.size() && i < declared.size(); ++i) {
      const Variable& want = module_.variables[declared[i]];
      if (given[i].kind == OperandKind::label) {
        failure.set(DiagnosticKind::undeclared_name, given[i].at,
                    fmt::format("expected what '{}' gets, found {}", want.name, describe(function, given[i])));
        return true;
      }
      if (given[i].kind != OperandKind::symbol || want.space != Space::param || want.is_unsized) continue;
      const Variable& have = module_.variables[given[i].id];
      if (have.size_bytes != want.size_bytes) {
        failure.set(DiagnosticKind::call_mismatch, given[i].at,
                    fmt::format("'{}' has {} bytes, the called function expects {}", have.name, have.size_bytes,
                                want.size_bytes));
        return true;
      }
    }
    return false;
  };
  if (parts.results != nullptr && sizes_differ(*parts.results, *results)) return false;
  return parts.arguments == nullptr || !sizes_differ(*parts.arguments, *parameters);
}

}  // namespace ptxkit::ptx
