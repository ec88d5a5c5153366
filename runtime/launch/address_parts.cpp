#include "runtime/launch/address_parts.hpp"

#include <algorithm>
#include <map>

namespace ptxkit {
namespace {

using ptx::AddressBase;
using ptx::Instruction;
using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;
using ptx::RegId;

// Instructions that only compute with a number.
constexpr Op kArithmetic[] = {Op::abs,  Op::add, Op::and_, Op::cvt, Op::cvta, Op::div,  Op::ld,  Op::mad,
                              Op::max,  Op::min, Op::mov,  Op::mul, Op::neg,  Op::not_, Op::or_, Op::rem,
                              Op::selp, Op::set, Op::setp, Op::shl, Op::shr,  Op::sub,  Op::xor_};

bool is_move(const Instruction& each) { return each.op == Op::mov || each.op == Op::cvta; }

// Results of cvta, and sums with them.
std::set<RegId> certain_addresses(const ptx::Function& kernel) {
  std::set<RegId> sure;
  for (bool changed = true; changed;) {
    changed = false;
    for (const Instruction& each : kernel.instructions) {
      const auto operands = kernel.operands(each);
      if (operands.size() < 2 || operands[0].kind != OperandKind::reg) continue;
      const auto is_sure = [&](size_t i) {
        return i < operands.size() && operands[i].kind == OperandKind::reg && sure.contains(operands[i].id);
      };
      const bool is_converted =
          each.op == Op::cvta && is_global_or_generic(each.space) && operands[1].kind == OperandKind::reg;
      const bool is_sum = (each.op == Op::add && (is_sure(1) || is_sure(2))) || (each.op == Op::mad && is_sure(3)) ||
                          ((each.op == Op::mov || each.op == Op::sub) && is_sure(1));
      if (is_converted || is_sum) changed |= sure.insert(operands[0].id).second;
    }
  }
  return sure;
}

}  // namespace

std::set<RegId> address_parts(const ptx::Function& kernel) {
  const std::set<RegId> sure = certain_addresses(kernel);
  std::set<RegId> parts;
  const auto add = [&](const Operand& operand) {
    return operand.kind == OperandKind::reg && parts.insert(operand.id).second;
  };
  const auto is_sure = [&](const Operand& operand) {
    return operand.kind == OperandKind::reg && sure.contains(operand.id);
  };
  for (const Instruction& each : kernel.instructions) {
    if (!is_global_or_generic(each.space) && !is_global_or_generic(each.second_space)) continue;
    for (const Operand& operand : kernel.operands(each))
      if (operand.kind == OperandKind::address && operand.base == AddressBase::reg) parts.insert(operand.id);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const Instruction& each : kernel.instructions) {
      const auto operands = kernel.operands(each);
      if (operands.size() < 2 || operands[0].kind != OperandKind::reg || !parts.contains(operands[0].id)) continue;
      if (is_move(each) || each.op == Op::sub) changed |= add(operands[1]);
      if ((each.op == Op::add || each.op == Op::selp) && operands.size() > 2) {
        const bool is_sum = each.op == Op::add;
        if (!is_sum || !is_sure(operands[2]) || is_sure(operands[1])) changed |= add(operands[1]);
        if (!is_sum || !is_sure(operands[1]) || is_sure(operands[2])) changed |= add(operands[2]);
      }
      if (each.op == Op::mad && operands.size() > 3) changed |= add(operands[3]);
    }
  }
  return parts;
}

std::set<ptx::VariableId> address_sized_scalars(const ptx::Module& module, const ptx::Function& kernel,
                                                const std::set<RegId>& address_parts) {
  using Parameters = std::set<ptx::VariableId>;
  std::map<RegId, Parameters> held;  // by register, the parameters that it holds or is a sum with
  Parameters loaded, other;
  const auto is_candidate = [&](uint32_t id) {
    return std::ranges::find(kernel.parameters, id) != kernel.parameters.end() && !module.variables[id].is_array &&
           !module.variables[id].is_pointer && ptx::byte_width(module.variables[id].type) == module.address_size / 8;
  };
  for (const Instruction& each : kernel.instructions) {
    const auto operands = kernel.operands(each);
    for (const Operand& operand : operands) {
      if (operand.kind == OperandKind::symbol) other.insert(operand.id);
      const bool is_in_memory = operand.kind == OperandKind::address && operand.base == AddressBase::variable;
      if (!is_in_memory || !is_candidate(operand.id)) continue;
      const bool is_whole = each.op == Op::ld && operands[0].kind == OperandKind::reg && operand.value == 0 &&
                            ptx::byte_width(each.type()) == module.address_size / 8;
      (is_whole && !address_parts.contains(operands[0].id) ? loaded : other).insert(operand.id);
      if (is_whole) held[operands[0].id].insert(operand.id);
    }
  }
  const auto held_in = [&](const Operand& operand) {
    const auto found = operand.kind == OperandKind::reg ? held.find(operand.id) : held.end();
    return found == held.end() ? Parameters() : found->second;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const Instruction& each : kernel.instructions) {
      const auto operands = kernel.operands(each);
      const bool keeps = is_move(each) || each.op == Op::selp || each.op == Op::add || each.op == Op::sub;
      if (!keeps || operands.empty() || operands[0].kind != OperandKind::reg) continue;
      for (const Operand& from : operands.subspan(1))
        for (const ptx::VariableId parameter : held_in(from)) changed |= held[operands[0].id].insert(parameter).second;
    }
  }
  for (const Instruction& each : kernel.instructions) {
    const bool is_to_memory =
        (each.op == Op::st || each.op == Op::atom || each.op == Op::red) && each.space == ptx::Space::global;
    if (is_to_memory || std::ranges::find(kArithmetic, each.op) != std::end(kArithmetic)) continue;
    for (const Operand& operand : kernel.operands(each)) {
      other.merge(held_in(operand));
      for (const Operand& part : kernel.children(operand)) other.merge(held_in(part));
    }
  }
  Parameters numbers;
  std::ranges::set_difference(loaded, other, std::inserter(numbers, numbers.end()));
  return numbers;
}

}  // namespace ptxkit
