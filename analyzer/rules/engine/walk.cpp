#include "analyzer/rules/engine/walk.hpp"

#include <bit>
#include <numeric>
#include <set>

#include "analyzer/ptx/facts.hpp"

namespace ptxkit::rules {

using flow::Value;
using flow::ValueId;

bool may_overlap(const flow::Forms& forms, const flow::Form& a, uint32_t a_bytes, const flow::Form& b,
                 uint32_t b_bytes) {
  uint64_t step = 0;
  for (const flow::Form* form : {&a, &b}) {
    if (form->modulus_bits < 64) step = std::gcd(step, uint64_t{1} << form->modulus_bits);
    for (const flow::Term& term : form->terms) {
      const uint64_t factor = static_cast<uint64_t>(std::abs(term.coefficient));
      const int zeros =
          std::min<int>(static_cast<int>(forms.bits(term.atom).trailing_zeros()), std::countl_zero(factor));
      step = std::gcd(step, factor << zeros);
    }
  }
  const int64_t apart = a.constant - b.constant;
  if (step == 0) return apart < b_bytes && apart + static_cast<int64_t>(a_bytes) > 0;
  const auto modulus = static_cast<int64_t>(std::min<uint64_t>(step, uint64_t{1} << 62));
  const int64_t residue = ((apart % modulus) + modulus) % modulus;
  return residue < b_bytes || residue + static_cast<int64_t>(a_bytes) > modulus;
}

std::vector<ValueId> ancestors(Context& context, ValueId start, size_t limit) {
  const flow::Ssa& ssa = context.analyses().ssa();
  std::vector<ValueId> found{start};
  std::set<ValueId> seen{start};
  for (size_t head = 0; head < found.size() && found.size() < limit; ++head) {
    const Value& value = ssa.value(found[head]);
    auto push = [&](ValueId id) {
      if (id != flow::kNone && seen.insert(id).second) found.push_back(id);
    };
    if (value.kind == Value::Kind::phi)
      for (const ValueId argument : ssa.arguments(found[head])) push(argument);
    if (value.kind != Value::Kind::result) continue;
    push(value.old);
    ptx::for_each_register(context.function(), context.function().instructions[value.instruction],
                           [&](uint32_t index, const ptx::Operand&, bool written) {
                             if (!written) push(ssa.at(index));
                           });
  }
  return found;
}

bool depends_on_thread(Context& context, ValueId start, bool or_block) {
  const flow::Ssa& ssa = context.analyses().ssa();
  return any_ancestor(context, start, [&](ValueId id) {
    if (ssa.value(id).kind != Value::Kind::result) return false;
    const flow::Operation operation = flow::operation_of(ssa, id);
    for (unsigned i = 0; i < operation.source_count; ++i) {
      const flow::Source source = flow::source_of(ssa, operation.first_source + i);
      if (source.kind != flow::Source::Kind::special) continue;
      const auto special = static_cast<ptx::SpecialRegister>(source.id);
      if (special == ptx::SpecialRegister::tid || special == ptx::SpecialRegister::laneid) return true;
      if (or_block && special == ptx::SpecialRegister::ctaid) return true;
    }
    return false;
  });
}

bool decides_branch(Context& context, ptx::InstructionId id, bool of_loop) {
  Analyses& analyses = context.analyses();
  const flow::Ssa& ssa = analyses.ssa();
  for (const flow::BlockId block : analyses.graph().reverse_postorder()) {
    const ptx::InstructionId last = analyses.graph().last(block);
    if (ssa.guard(last) == flow::kNone || analyses.graph().block(block).successor_count < 2) continue;
    if (of_loop) {
      const flow::LoopId loop = analyses.loops().innermost(block);
      if (loop == flow::kNone || !analyses.loops().contains(loop, analyses.graph().block_of(id))) continue;
      bool leaves = false;
      for (const flow::BlockId next : analyses.graph().successors(block))
        leaves = leaves || !analyses.loops().contains(loop, next);
      if (!leaves) continue;
    }
    if (any_ancestor(context, ssa.guard(last), [&](flow::ValueId value) {
          return ssa.value(value).kind == flow::Value::Kind::result && ssa.value(value).instruction == id;
        }))
      return true;
  }
  return false;
}

const ptx::Instruction* definition_of(Context& context, ValueId id) {
  if (id == flow::kNone) return nullptr;
  const Value& value = context.analyses().ssa().value(id);
  return value.kind == Value::Kind::result ? &context.function().instructions[value.instruction] : nullptr;
}

std::set<ptx::VariableId> shared_variables(Context& context) {
  const ptx::Function& function = context.function();
  std::set<ptx::VariableId> shared;
  for (const ptx::VariableId id : function.variables)
    if (context.module.variables[id].space == ptx::Space::shared) shared.insert(id);
  for (const ptx::Operand& operand : function.operand_pool) {
    const bool names = operand.kind == ptx::OperandKind::symbol ||
                       (operand.kind == ptx::OperandKind::address && operand.base == ptx::AddressBase::variable);
    if (names && operand.id < context.module.variables.size() &&
        context.module.variables[operand.id].space == ptx::Space::shared)
      shared.insert(operand.id);
  }
  return shared;
}

uint64_t static_shared_bytes(Context& context) {
  uint64_t total = 0;
  for (const ptx::VariableId id : shared_variables(context)) {
    const ptx::Variable& variable = context.module.variables[id];
    const uint64_t align = std::max(variable.align, 1u);
    if (!variable.is_unsized) total = (total + align - 1) / align * align + variable.size_bytes;
  }
  return total;
}

}  // namespace ptxkit::rules
