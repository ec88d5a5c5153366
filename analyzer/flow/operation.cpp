#include "analyzer/flow/operation.hpp"

#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::flow {

using ptx::OperandKind;

Source source_of(const Ssa& ssa, uint32_t pool_index) {
  const ptx::Operand& operand = ssa.graph().function().operand_pool[pool_index];
  switch (operand.kind) {
    case OperandKind::reg:
      // A component of a vector register, and a register with an offset, are not followed.
      if (operand.component || operand.value != 0 || ssa.at(pool_index) == kNone) return {};
      return {.kind = Source::Kind::value, .id = ssa.at(pool_index), .negated = operand.negated};
    case OperandKind::integer:
      return {.kind = Source::Kind::constant, .constant = operand.value};
    case OperandKind::symbol:
      return {.kind = Source::Kind::variable, .id = operand.id, .constant = operand.value};
    case OperandKind::special:
      return {.kind = Source::Kind::special,
              .id = operand.id,
              .component = operand.component ? operand.component : static_cast<uint8_t>('x')};
    case OperandKind::function:
      return {.kind = Source::Kind::function, .id = operand.id};
    default:
      return {};
  }
}

Source address_base(const Ssa& ssa, uint32_t pool_index) {
  const ptx::Operand& operand = ssa.graph().function().operand_pool[pool_index];
  switch (operand.base) {
    case ptx::AddressBase::reg:
      if (ssa.at(pool_index) == kNone) return {};
      return {.kind = Source::Kind::value, .id = ssa.at(pool_index)};
    case ptx::AddressBase::variable:
      return {.kind = Source::Kind::variable, .id = operand.id};
    case ptx::AddressBase::immediate:
    case ptx::AddressBase::none:
      return {.kind = Source::Kind::constant, .constant = 0};
  }
  return {};
}

Operation operation_of(const Ssa& ssa, ValueId id) {
  const ptx::Function& function = ssa.graph().function();
  const Value& value = ssa.value(id);
  Operation operation;
  operation.instruction = &function.instructions[value.instruction];
  operation.width = width_of(ssa, id);
  const ptx::Operand& destination = function.operand_pool[operation.instruction->first_operand];
  if (destination.child_count) {
    operation.part = value.operand - destination.first_child;
    operation.parts = destination.child_count;
  }
  operation.first_source = operation.instruction->first_operand + 1;
  operation.source_count = operation.instruction->operand_count - 1;
  return operation;
}

unsigned width_of(const Ssa& ssa, ValueId id) {
  return ptx::bit_width(ssa.graph().function().registers[ssa.value(id).reg].type);
}

}  // namespace ptxkit::flow
