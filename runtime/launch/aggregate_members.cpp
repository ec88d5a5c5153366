// See aggregate_members.hpp. Follows moves and sums forwards from the addresses of the parameters.
#include "runtime/launch/aggregate_members.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <span>
#include <tuple>
#include <utility>

namespace ptxkit {
namespace {

using ptx::AddressBase;
using ptx::Instruction;
using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;
using ptx::RegId;

struct Place {
  ptx::VariableId parameter = ptx::kNone;
  uint64_t offset = 0;
};

}  // namespace

std::vector<AggregateMember> aggregate_members(const ptx::Module& module, const ptx::Function& kernel,
                                               const std::set<RegId>& address_parts) {
  std::map<RegId, Place> places;  // of the parameters' addresses
  const auto is_aggregate = [&](uint32_t id) {
    return std::ranges::find(kernel.parameters, id) != kernel.parameters.end() && module.variables[id].is_array;
  };
  std::vector<AggregateMember> members;
  const auto note = [&](const Place& place, ptx::Type type, const Operand& into) {
    const uint32_t size_bytes = ptx::byte_width(type);
    const bool is_address =
        size_bytes == module.address_size / 8 && into.kind == OperandKind::reg && address_parts.contains(into.id);
    members.push_back({place.parameter, place.offset, size_bytes, type, is_address});
  };
  for (const Instruction& each : kernel.instructions) {
    const auto operands = kernel.operands(each);
    if (operands.size() < 2) continue;
    const Operand &into = operands[0], &from = operands[1];
    if (into.kind == OperandKind::reg && (each.op == Op::mov || each.op == Op::cvta || each.op == Op::add)) {
      if (from.kind == OperandKind::symbol && is_aggregate(from.id)) places[into.id] = {from.id, from.value};
      const auto known = from.kind == OperandKind::reg ? places.find(from.id) : places.end();
      const bool is_sum = each.op == Op::add;
      if (known != places.end() && (!is_sum || operands[2].kind == OperandKind::integer))
        places[into.id] = {known->second.parameter, known->second.offset + (is_sum ? operands[2].value : 0)};
    }
    if (each.op != Op::ld || from.kind != OperandKind::address) continue;
    Place place;
    if (from.base == AddressBase::variable && is_aggregate(from.id)) place = {from.id, from.value};
    if (const auto known = places.find(from.id); from.base == AddressBase::reg && known != places.end())
      place = {known->second.parameter, known->second.offset + from.value};
    if (place.parameter == ptx::kNone) continue;
    if (into.kind != OperandKind::vector) note(place, each.type(), into);
    for (const Operand& element :
         into.kind == OperandKind::vector ? kernel.children(into) : std::span<const Operand>()) {
      note(place, each.type(), element);
      place.offset += ptx::byte_width(each.type());
    }
  }
  const auto order = [](const AggregateMember& member) {
    return std::tuple(member.parameter, member.offset, !member.is_address);
  };
  std::ranges::sort(members, {}, order);
  const auto same = [](const AggregateMember& a, const AggregateMember& b) {
    return a.parameter == b.parameter && a.offset == b.offset;
  };
  members.erase(std::unique(members.begin(), members.end(), same), members.end());
  return members;
}

}  // namespace ptxkit
