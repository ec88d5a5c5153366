// Sweeps of transfer functions over SSA in reverse postorder until nothing changes. Only values whose inputs changed
// are looked at again, so that straight code costs one sweep.
#include "analyzer/flow/domain.hpp"

#include <algorithm>
#include <array>

#include "analyzer/flow/position_set.hpp"
#include "analyzer/flow/transfer.hpp"
#include "analyzer/ptx/facts.hpp"

namespace ptxkit::flow {

using ptx::Op;
using ptx::OperandKind;
using ptx::Space;

namespace {

// Before PTX 2.3 there was no .address_size: 32 is then only the default, and 64-bit pointers are what compilers wrote.
bool is_pointer_width(const ptx::Module& module, unsigned bits) { return bits == module.address_size || bits == 64; }

constexpr unsigned kPhiChangesBeforeWidening = 4;
// Widening ends the climb of intervals and bits; should bases go round in circles, this ends it too.
constexpr unsigned kMaxPhiChanges = 100;

Fact unknown(unsigned width) {
  Fact fact;
  fact.reached = true;
  fact.bits = truncate(Bits{}, width);
  fact.high = low_mask(width);
  return fact;
}

Fact number(Bits bits, uint64_t low, uint64_t high, unsigned width) {
  Fact fact;
  fact.reached = true;
  fact.bits = truncate(bits, width);
  fact.low = low;
  fact.high = std::min(high, low_mask(width));
  return fact;
}

// What the host promises of the scalar parameter that a load reads whole.
const ParameterFacts* parameter_facts_of(const ptx::Module& module, const Ssa& ssa, const Operation& operation,
                                         const LaunchShape& shape) {
  const ptx::Instruction& instruction = *operation.instruction;
  if (!shape.facts || instruction.op != Op::ld || instruction.space != Space::param) return nullptr;
  const Source base = address_base(ssa, operation.first_source);
  if (base.kind != Source::Kind::variable || ssa.graph().function().operand_pool[operation.first_source].value)
    return nullptr;
  return shape.parameter(module.variables[base.id].name);
}

// Addresses in the part of shared memory that the system keeps for itself (PTX ISA 9.0, %reserved_smem_offset_<n>).
bool is_reserved_shared(ptx::SpecialRegister special) {
  return special == ptx::SpecialRegister::reserved_smem_offset_0 ||
         special == ptx::SpecialRegister::reserved_smem_offset_1 ||
         special == ptx::SpecialRegister::reserved_smem_offset_begin;
}

// Bits and interval tell each other what they know.
void reconcile(Fact& fact) {
  if (fact.base != kNoBase) return;
  fact.low = std::max(fact.low, fact.bits.minimum());
  fact.high = std::min(fact.high, fact.bits.maximum());
  if (fact.low > fact.high) {
    fact.low = fact.bits.minimum();
    fact.high = fact.bits.maximum();
  }
  fact.bits.zero |= below(fact.high).zero & ~fact.bits.one;
}

}  // namespace

SpaceSet set_of(Space space) {
  switch (space) {
    case Space::global:
      return kGlobalSet;
    case Space::shared:
    case Space::shared_cluster:
      return kSharedSet;
    case Space::local:
      return kLocalSet;
    case Space::constant:
      return kConstantSet;
    case Space::param:
      return kParamSet;
    default:
      return kUnknownSpace;
  }
}

std::optional<Space> only_space(SpaceSet set) {
  switch (set) {
    case kGlobalSet:
      return Space::global;
    case kSharedSet:
      return Space::shared;
    case kLocalSet:
      return Space::local;
    case kConstantSet:
      return Space::constant;
    case kParamSet:
      return Space::param;
    default:
      return std::nullopt;
  }
}

Domain::Domain(const ptx::Module& module, const Ssa& ssa, const LaunchShape& shape)
    : module_(&module), ssa_(&ssa), shape_(shape) {
  bases_.emplace_back();
  used_as_pointer_.push_back(false);
  for (const ptx::Operand& operand : ssa.graph().function().operand_pool) {
    const bool names_variable = operand.kind == OperandKind::symbol ||
                                (operand.kind == OperandKind::address && operand.base == ptx::AddressBase::variable);
    if (!names_variable || operand.id >= module.variables.size()) continue;
    if (!variable_bases_.try_emplace(operand.id, static_cast<BaseId>(bases_.size())).second) continue;
    bases_.push_back({.kind = Base::Kind::variable, .id = operand.id});
    used_as_pointer_.push_back(true);
  }
  value_bases_.assign(ssa.size(), kNoBase);
  facts_.resize(ssa.size());
  std::vector<uint8_t> changes(ssa.size(), 0);
  std::vector<uint32_t> position(ssa.size(), kNone);
  PositionSet dirty(ssa.order().size());
  for (uint32_t i = 0; i < ssa.order().size(); ++i) {
    position[ssa.order()[i]] = i;
    dirty.insert(i);
  }
  for (size_t at = dirty.take(0); at != PositionSet::kNoPosition; at = dirty.take(at + 1)) {
    const ValueId id = ssa.order()[at];
    Fact fact = transfer(id);
    reconcile(fact);
    if (fact == facts_[id]) continue;
    if (ssa.value(id).kind == Value::Kind::phi && facts_[id].reached) {
      if (changes[id] > kMaxPhiChanges) continue;
      ++changes[id];
      if (changes[id] > kMaxPhiChanges) {
        fact = unknown(width_of(ssa, id));
        fact.points_to = kUnknownSpace;
      } else if (changes[id] > kPhiChangesBeforeWidening) {
        fact.low = 0;
        fact.high = low_mask(width_of(ssa, id));
        fact.bits = join(fact.bits, facts_[id].bits);
        const unsigned tail = std::min(fact.bits.known_low(), facts_[id].bits.known_low());
        fact.bits.zero &= low_mask(tail) | ~low_mask(width_of(ssa, id));
        fact.bits.one &= low_mask(tail);
        if (fact == facts_[id]) continue;
      }
    }
    facts_[id] = fact;
    ssa.for_each_dependent(id, [&](ValueId user) {
      if (position[user] != kNone) dirty.insert(position[user]);
    });
  }
}

BaseId Domain::parameter_base(ptx::VariableId id, uint64_t offset_bytes) {
  auto [place, added] = parameter_bases_.try_emplace({id, offset_bytes}, static_cast<BaseId>(bases_.size()));
  if (added) {
    bases_.push_back({.kind = Base::Kind::parameter, .id = id, .offset_bytes = offset_bytes});
    used_as_pointer_.push_back(module_->variables[id].is_pointer);
  }
  return place->second;
}

BaseId Domain::value_base(Base::Kind kind, ValueId id) {
  if (value_bases_[id] == kNoBase) {
    value_bases_[id] = static_cast<BaseId>(bases_.size());
    bases_.push_back({.kind = kind, .id = id});
    used_as_pointer_.push_back(kind == Base::Kind::merged);
  }
  return value_bases_[id];
}

// Whether the value itself, through moves, is converted as an address or is the base of one.
bool Domain::is_used_as_pointer(ValueId id, unsigned depth) const {
  const ptx::Function& function = ssa_->graph().function();
  for (const Use& use : ssa_->uses(id)) {
    if (use.kind != Use::Kind::operand) continue;
    const ptx::Instruction& user = function.instructions[use.id];
    if (user.op == Op::cvta || function.operand_pool[use.operand].kind == OperandKind::address) return true;
    // Passed on as it is, or with a displacement.
    const bool is_displaced =
        user.op == Op::add && user.operand_count == 3 &&
        std::any_of(&function.operand_pool[user.first_operand + 1], &function.operand_pool[user.first_operand + 3],
                    [](const ptx::Operand& operand) { return operand.kind == OperandKind::integer; });
    if ((user.op == Op::mov || is_displaced) && depth && ssa_->at(user.first_operand) != kNone &&
        is_used_as_pointer(ssa_->at(user.first_operand), depth - 1))
      return true;
  }
  return false;
}

unsigned Domain::priority(BaseId id) const {
  const Base& base = bases_[id];
  if (base.kind == Base::Kind::variable) return 4;
  if (used_as_pointer_[id]) return 3;
  return base.kind == Base::Kind::parameter ? 2 : 1;
}

std::string Domain::describe(BaseId id) const {
  const Base& base = bases_[id];
  switch (base.kind) {
    case Base::Kind::none:
      return "no object";
    case Base::Kind::variable: {
      const ptx::Variable& variable = module_->variables[base.id];
      return std::string(ptx::text(variable.space)) + " variable '" + std::string(variable.name) + "'";
    }
    case Base::Kind::parameter: {
      std::string text = "parameter '" + std::string(module_->variables[base.id].name) + "'";
      if (base.offset_bytes) text += " at byte " + std::to_string(base.offset_bytes);
      return text;
    }
    case Base::Kind::loaded: {
      const Value& value = ssa_->value(base.id);
      const auto line = module_->position(ssa_->graph().function().instructions[value.instruction].at).line;
      return "the pointer that arrives whole in line " + std::to_string(line);
    }
    case Base::Kind::merged: {
      const Value& value = ssa_->value(base.id);
      return "the pointer chosen for " + ssa_->graph().function().registers[value.reg].name();
    }
  }
  return {};
}

Fact Domain::fact_of(const Source& source, unsigned width) const {
  switch (source.kind) {
    case Source::Kind::constant: {
      const uint64_t value = source.constant & low_mask(width);
      return number(Bits::constant(value), value, value, width);
    }
    case Source::Kind::value:
      return facts_[source.id];
    case Source::Kind::variable: {
      Fact fact = unknown(width);
      const auto found = variable_bases_.find(source.id);
      if (found == variable_bases_.end()) return fact;
      fact.base = found->second;
      fact.points_to = set_of(module_->variables[source.id].space);
      fact.may_be_direct = true;
      fact.bits = Bits::constant(source.constant & low_mask(width));
      return fact;
    }
    case Source::Kind::special: {
      const SpecialRange range = range_of(static_cast<ptx::SpecialRegister>(source.id), source.component, shape_);
      return number(range.low == range.high ? Bits::constant(range.low) : below(range.high), range.low, range.high,
                    width);
    }
    default:
      return unknown(width);
  }
}

Bits Domain::absolute(const Fact& fact) const {
  if (fact.base == kNoBase) return fact.bits;
  const Base& base = bases_[fact.base];
  uint32_t align = 1;
  if (base.kind == Base::Kind::variable) align = module_->variables[base.id].align;
  if (base.kind == Base::Kind::parameter && base.offset_bytes == 0) align = module_->variables[base.id].pointer_align;
  const uint64_t mask = align ? align - 1 : 0;
  return {fact.bits.zero & mask, fact.bits.one & mask};
}

Fact Domain::sum(const Fact& a, const Fact& b, unsigned width, bool subtract_b) const {
  const Fact* owner = &a;
  const Fact* other = &b;
  bool difference_of_one_base = false;
  if (a.base != kNoBase && b.base != kNoBase) {
    difference_of_one_base = subtract_b && a.base == b.base;
    if (!subtract_b && priority(b.base) > priority(a.base)) std::swap(owner, other);
  } else if (b.base != kNoBase && !subtract_b) {
    std::swap(owner, other);
  }
  const bool other_is_opaque = !difference_of_one_base && other->base != kNoBase;
  const Bits other_bits = other_is_opaque ? absolute(*other) : other->bits;
  Fact fact = unknown(width);
  fact.bits =
      truncate(subtract_b ? subtract(a.bits, &b == other ? other_bits : b.bits) : add(owner->bits, other_bits), width);
  if (difference_of_one_base) return fact;
  if (subtract_b && a.base == kNoBase && b.base != kNoBase) return unknown(width);
  if (owner->base != kNoBase || owner->points_to) {
    fact.base = owner->base;
    fact.points_to = owner->points_to;
    fact.may_be_direct = owner->may_be_direct;
    fact.may_be_generic = owner->may_be_generic;
  } else if (other->points_to) {
    fact.points_to = other->points_to;
    fact.may_be_direct = other->may_be_direct;
    fact.may_be_generic = other->may_be_generic;
  }
  fact.from_cvta_shared = a.from_cvta_shared || (b.from_cvta_shared && !subtract_b);
  if (fact.base != kNoBase) return fact;
  const uint64_t mask = low_mask(width);
  if (!subtract_b && a.high <= mask - std::min(mask, b.high)) {
    fact.low = a.low + b.low;
    fact.high = a.high + b.high;
  } else if (subtract_b && a.low >= b.high) {
    fact.low = a.low - b.high;
    fact.high = a.high - b.low;
  }
  return fact;
}

Fact Domain::choose(const Fact& a, const Fact& b, ValueId at) {
  if (!a.reached) return b;
  if (!b.reached) return a;
  Fact fact;
  fact.reached = true;
  fact.points_to = a.points_to | b.points_to;
  // A null constant is no pointer but joins with one: `p = found ? q : 0` still points where q does.
  auto is_null = [](const Fact& f) { return f.base == kNoBase && !f.points_to && f.low == 0 && f.high == 0; };
  if (!is_null(a) && !is_null(b) && fact.points_to && (!a.points_to || !b.points_to)) fact.points_to |= kUnknownSpace;
  fact.may_be_direct = a.may_be_direct || b.may_be_direct;
  fact.may_be_generic = a.may_be_generic || b.may_be_generic;
  fact.from_cvta_shared = a.from_cvta_shared || b.from_cvta_shared;
  fact.low = std::min(a.low, b.low);
  fact.high = std::max(a.high, b.high);
  const bool a_null = is_null(a), b_null = is_null(b);
  if (a.base == b.base) {
    fact.base = a.base;
  } else if ((a.base != kNoBase || a_null) && (b.base != kNoBase || b_null)) {
    fact.base = value_base(Base::Kind::merged, at);
    for (const BaseId member : {a.base, b.base}) {
      auto& members = bases_[fact.base].members;
      if (member != kNoBase && member != fact.base &&
          std::find(members.begin(), members.end(), member) == members.end())
        members.push_back(member);
    }
  } else {
    // A pointer on one side, a number on the other: of the sum only the absolute bits are common.
    fact.bits = join(absolute(a), absolute(b));
    fact.low = 0;
    fact.high = low_mask(width_of(*ssa_, at));
    return fact;
  }
  if (a_null && b.base != kNoBase)
    fact.bits = b.bits;
  else if (b_null && a.base != kNoBase)
    fact.bits = a.bits;
  else
    fact.bits = join(a.bits, b.bits);
  return fact;
}

Fact Domain::transfer(ValueId id) {
  const Value& value = ssa_->value(id);
  switch (value.kind) {
    case Value::Kind::undefined:
      return {};
    case Value::Kind::phi: {
      Fact fact;
      const unsigned width = width_of(*ssa_, id);
      // Once merged, a phi stays merged: its own base comes back to it around the loop.
      const BaseId own = value_bases_[id];
      for (const ValueId argument : ssa_->arguments(id)) {
        if (argument == kNone || !facts_[argument].reached) continue;
        Fact next = facts_[argument];
        if (own != kNoBase && next.base != kNoBase && next.base != own) {
          auto& members = bases_[own].members;
          if (std::find(members.begin(), members.end(), next.base) == members.end()) members.push_back(next.base);
          next.base = own;
        }
        fact = choose(fact, next, id);
      }
      if (fact.reached) fact.bits = truncate(fact.bits, width);
      return fact;
    }
    case Value::Kind::result:
      break;
  }
  Fact fact = computed(operation_of(*ssa_, id), id);
  if (value.old != kNone) fact = choose(fact, facts_[value.old], id);
  return fact;
}

// What a load, an atomic or a call brings in.
Fact Domain::loaded(const Operation& operation, ValueId id) {
  const ptx::Instruction& instruction = *operation.instruction;
  const ptx::Type type = instruction.type();
  const unsigned bits = ptx::bit_width(type);
  const ptx::TypeKind kind = ptx::kind(type);
  Fact fact = unknown(operation.width);
  if (bits < operation.width && kind != ptx::TypeKind::signed_int && bits) {
    fact.bits = truncate(fact.bits, bits);
    fact.high = low_mask(bits);
  }
  const ParameterFacts* promised = parameter_facts_of(*module_, *ssa_, operation, shape_);
  if (promised && promised->low && promised->high) {
    const uint64_t low = *promised->low & low_mask(operation.width), high = *promised->high & low_mask(operation.width);
    if (low <= high) return number(low == high ? Bits::constant(low) : below(high), low, high, operation.width);
  }
  const bool is_word =
      kind == ptx::TypeKind::bits || kind == ptx::TypeKind::unsigned_int || kind == ptx::TypeKind::signed_int;
  if (!is_word || !is_pointer_width(*module_, bits) || operation.width != bits) return fact;
  fact.points_to = kUnknownSpace;
  fact.bits = Bits::constant(0);
  if (instruction.op == Op::ld && instruction.space == Space::param && instruction.operand_count > 1) {
    const ptx::Operand& address = ssa_->graph().function().operand_pool[operation.first_source];
    Source base = address_base(*ssa_, operation.first_source);
    uint64_t offset = address.value + uint64_t{operation.part} * (bits / 8);
    if (base.kind == Source::Kind::value) {
      const Fact& pointer = facts_[base.id];
      if (pointer.base != kNoBase && bases_[pointer.base].kind == Base::Kind::variable &&
          pointer.bits.known() == ~0ull) {
        base = {.kind = Source::Kind::variable, .id = bases_[pointer.base].id};
        offset += pointer.bits.one;
      }
    }
    if (base.kind == Source::Kind::variable && module_->variables[base.id].parameter_index != kNone) {
      const ptx::Variable& parameter = module_->variables[base.id];
      fact.base = parameter_base(base.id, offset);
      if (!used_as_pointer_[fact.base]) used_as_pointer_[fact.base] = is_used_as_pointer(id, 3);
      if (parameter.is_pointer && parameter.pointer_space != Space::generic) {
        fact.points_to = set_of(parameter.pointer_space);
        fact.may_be_direct = true;
      }
      return fact;
    }
  }
  fact.base = value_base(Base::Kind::loaded, id);
  used_as_pointer_[fact.base] = is_used_as_pointer(id, 3);
  return fact;
}

Fact Domain::computed(const Operation& operation, ValueId id) {
  const ptx::Function& function = ssa_->graph().function();
  const ptx::Instruction& instruction = *operation.instruction;
  const unsigned width = operation.width;
  const unsigned type_width = ptx::bit_width(instruction.type());
  auto source = [&](unsigned i) {
    return i < operation.source_count ? source_of(*ssa_, operation.first_source + i) : Source{};
  };
  auto input = [&](unsigned i, unsigned bits) { return fact_of(source(i), bits); };
  auto plain = [&](unsigned i, unsigned bits) {  // as a number, whatever it points to
    Fact fact = input(i, bits);
    if (fact.base == kNoBase) return fact;
    const Bits known = absolute(fact);
    fact = unknown(bits);
    fact.bits = truncate(known, bits);
    return fact;
  };
  auto keep_pointer = [](Fact& to, const Fact& from) {
    to.points_to = from.points_to;
    to.may_be_direct = from.may_be_direct;
    to.may_be_generic = from.may_be_generic;
    to.from_cvta_shared = from.from_cvta_shared;
  };

  // Halves of a pointer that were shuffled, stored or passed apart arrive together again.
  auto rejoined = [&](Fact fact) {
    if (!is_used_as_pointer(id, 3)) return fact;
    fact.base = value_base(Base::Kind::loaded, id);
    used_as_pointer_[fact.base] = true;
    fact.bits = Bits::constant(0);
    fact.points_to = kUnknownSpace;
    return fact;
  };

  switch (instruction.op) {
    case Op::ld:
    case Op::ldu:
    case Op::atom:
      return loaded(operation, id);
    case Op::bfi: {  // the upper half over the lower, as cooperative groups join %envreg1 and %envreg2
      auto is_32 = [&](unsigned i) { return source(i).kind == Source::Kind::constant && source(i).constant == 32; };
      if (width == 64 && is_32(2) && is_32(3) && is_pointer_width(*module_, width)) return rejoined(unknown(width));
      break;
    }
    case Op::mov: {
      const ptx::Operand& from = function.operand_pool[operation.first_source];
      // Where cooperative groups keep their state: an address that arrives whole.
      if (source(0).kind == Source::Kind::special &&
          is_reserved_shared(static_cast<ptx::SpecialRegister>(source(0).id))) {
        Fact fact = unknown(width);
        fact.base = value_base(Base::Kind::loaded, id);
        used_as_pointer_[fact.base] = true;
        fact.bits = Bits::constant(0);
        fact.points_to = kSharedSet;
        fact.may_be_direct = true;
        return fact;
      }
      if (operation.parts == 1 && from.child_count == 0) return input(0, width);
      if (operation.parts == 1) {  // {lo, hi} packed
        const unsigned part_width = width / from.child_count;
        Bits bits = Bits::constant(0);
        for (unsigned i = 0; i < from.child_count; ++i) {
          const Fact part = fact_of(source_of(*ssa_, from.first_child + i), part_width);
          bits = bit_or(bits, shift_left(truncate(part.base == kNoBase ? part.bits : absolute(part), part_width),
                                         i * part_width));
        }
        const Fact fact = number(bits, 0, low_mask(width), width);
        return is_pointer_width(*module_, width) && bits.known() != ~0ull ? rejoined(fact) : fact;
      }
      const Fact whole = plain(0, width * operation.parts);
      return number(shift_right(whole.bits, std::min(63u, operation.part * width)), 0, low_mask(width), width);
    }
    case Op::cvta: {
      const bool to_space = instruction.to_space;
      Fact fact = input(0, width);
      if (!to_space) {
        fact.points_to = set_of(instruction.space);
        fact.from_cvta_shared = fact.from_cvta_shared || fact.points_to == kSharedSet;
      } else {
        fact.points_to = set_of(instruction.space);
        fact.from_cvta_shared = false;
      }
      fact.may_be_generic = !to_space;
      fact.may_be_direct = to_space;
      return fact;
    }
    case Op::mapa:
    case Op::getctarank: {
      Fact fact = unknown(width);
      if (instruction.op == Op::mapa) {
        fact = input(0, width);
        fact.base = kNoBase;
        fact.bits = absolute(input(0, width));
        fact.points_to = kSharedSet | kUnknownSpace;
      }
      return fact;
    }
    case Op::cvt: {
      if (instruction.type_count < 2) return unknown(width);
      const ptx::Type to = instruction.types[0], from = instruction.types[1];
      const unsigned from_width = ptx::bit_width(from), to_width = ptx::bit_width(to);
      const bool integers = ptx::kind(to) != ptx::TypeKind::floating && ptx::kind(from) != ptx::TypeKind::floating &&
                            ptx::kind(to) != ptx::TypeKind::packed && ptx::kind(from) != ptx::TypeKind::packed;
      if (!integers || ptx::facts_of(function, instruction).saturates) return unknown(width);
      const Fact a = input(0, from_width);
      const bool is_signed = ptx::kind(from) == ptx::TypeKind::signed_int;
      if (a.base != kNoBase) {
        Fact fact = a;
        const unsigned kept = std::min(from_width, to_width);
        fact.bits = {a.bits.zero & low_mask(kept), a.bits.one & low_mask(kept)};
        if (kept >= 64) fact.bits = a.bits;
        if (kept < 32) return unknown(width);
        return fact;
      }
      Fact fact = a;
      fact.bits = truncate(a.bits, from_width);
      if (is_signed && to_width > from_width) fact.bits = sign_extend(fact.bits, from_width);
      const bool fits = a.high <= low_mask(std::min(from_width, to_width)) &&
                        (!is_signed || to_width <= from_width || a.high <= low_mask(from_width - 1));
      fact.bits = truncate(fact.bits, std::min(to_width, width));
      if (!fits) {
        fact.low = 0;
        fact.high = low_mask(width);
      }
      return fact;
    }
    case Op::add:
    case Op::sub: {
      if (ptx::kind(instruction.type()) == ptx::TypeKind::floating ||
          ptx::kind(instruction.type()) == ptx::TypeKind::packed)
        return unknown(width);
      return sum(input(0, type_width), input(1, type_width), width, instruction.op == Op::sub);
    }
    case Op::mad: {
      Fact product = integer_multiply(function, instruction, plain(0, type_width), plain(1, type_width), width);
      if (ptx::kind(instruction.type()) == ptx::TypeKind::floating) return unknown(width);
      return sum(product, input(2, width), width, false);
    }
    case Op::and_: {
      const Fact a = input(0, width), b = input(1, width);
      if (a.base == kNoBase && b.base == kNoBase) {
        Fact fact = number(bit_and(a.bits, b.bits), 0, std::min(a.high, b.high), width);
        if (a.points_to && !b.points_to) keep_pointer(fact, a);
        if (b.points_to && !a.points_to) keep_pointer(fact, b);
        return fact;
      }
      Fact fact =
          number(bit_and(truncate(absolute(a), width), truncate(absolute(b), width)), 0, low_mask(width), width);
      const Fact& pointer = a.base != kNoBase ? a : b;
      // Rounding down stays in the object's space; picking out low bits is a number.
      if (fact.bits.maximum() > 0xffff) keep_pointer(fact, pointer);
      return fact;
    }
    case Op::or_: {
      const Fact a = input(0, width), b = input(1, width);
      if ((a.base == kNoBase) != (b.base == kNoBase)) {
        const Fact& pointer = a.base != kNoBase ? a : b;
        const Fact& other = a.base != kNoBase ? b : a;
        // An `or` into bits that are surely 0 is an addition.
        if ((other.bits.maximum() & ~absolute(pointer).zero) == 0) return sum(pointer, other, width, false);
      }
      Fact fact = number(bit_or(truncate(absolute(a), width), truncate(absolute(b), width)), 0, low_mask(width), width);
      if (a.base != kNoBase && b.base == kNoBase) keep_pointer(fact, a);
      if (b.base != kNoBase && a.base == kNoBase) keep_pointer(fact, b);
      return fact;
    }
    case Op::shfl: {
      if (operation.part != 0 && operation.parts > 1) return unknown(width);
      Fact fact = input(0, width);
      const Base::Kind kind = bases_[fact.base].kind;
      if (kind == Base::Kind::none || kind == Base::Kind::variable || kind == Base::Kind::parameter) return fact;
      const Fact from = fact;
      fact = unknown(width);
      keep_pointer(fact, from);
      return fact;
    }
    case Op::selp:
    case Op::slct:
      return choose(input(0, width), input(1, width), id);
    default:
      break;
  }
  // Everything else works on plain numbers.
  std::array<Fact, 4> inputs;
  const unsigned count = std::min(operation.source_count, 4u);
  for (unsigned i = 0; i < count; ++i) {
    const unsigned bits = instruction.op == Op::shl || instruction.op == Op::shr ? (i ? 32 : type_width)
                          : type_width                                           ? type_width
                                                                                 : width;
    inputs[i] = plain(i, bits);
  }
  return number_operation(function, operation, {inputs.data(), count});
}

}  // namespace ptxkit::flow
