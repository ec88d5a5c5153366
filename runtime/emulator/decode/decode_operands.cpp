// Operands: their purpose according to the ISA table, and their translation to Refs.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "runtime/emulator/decode/decode.hpp"
#include "runtime/emulator/instructions/memory/access.hpp"
#include "support/check.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::AddressBase;
using ptx::MatchedOperand;
using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Purpose;
using ptx::Role;
using ptx::Space;
using ptx::Type;
using ptx::TypeKind;

bool is_float(Type type) { return ptx::kind(type) == TypeKind::floating; }

// The type of a list of registers; constants in it are given as bits.
Type bits_of(Type type) {
  switch (ptx::byte_width(type)) {
    case 1:
      return Type::b8;
    case 2:
      return Type::b16;
    case 4:
      return Type::b32;
    case 8:
      return Type::b64;
    default:
      return Type::b128;
  }
}

}  // namespace

bool Decoder::has(Purpose purpose) const {
  return std::ranges::any_of(operands_, [&](const MatchedOperand& each) { return each.spec.purpose == purpose; });
}

// Takes the first operand of this purpose. Operands of one purpose are in the order in which they are used.
const MatchedOperand* Decoder::take(Purpose purpose) {
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (operands_[i].spec.purpose != purpose) continue;
    taken_ |= uint64_t{1} << i;
    return &operands_[i];
  }
  refuse(fmt::format("the ISA table gives it no '{}'", ptx::text(purpose)));
  return nullptr;
}

std::vector<const MatchedOperand*> Decoder::take_all(Purpose purpose) {
  std::vector<const MatchedOperand*> all;
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (operands_[i].spec.purpose != purpose) continue;
    taken_ |= uint64_t{1} << i;
    all.push_back(&operands_[i]);
  }
  return all;
}

void Decoder::ignore_operand(Purpose purpose) {
  for (size_t i = 0; i < operands_.size(); ++i)
    if (operands_[i].spec.purpose == purpose) taken_ |= uint64_t{1} << i;
}

void Decoder::ignore_all_operands() { taken_ = ~uint64_t{0}; }

void Decoder::refuse_untaken_operands() {
  for (size_t i = 0; i < operands_.size(); ++i)
    if ((taken_ >> i & 1) == 0)
      refuse(fmt::format("nothing is known of its operand '{}'", ptx::text(operands_[i].spec.purpose)));
}

uint64_t Decoder::number(Purpose purpose) {
  const MatchedOperand* given = take(purpose);
  if (given == nullptr) return 0;
  if (given->operand.kind != OperandKind::integer) refuse("a constant is expected");
  return given->operand.value;
}

Ref Decoder::source(Purpose purpose) {
  const MatchedOperand* given = take(purpose);
  return given != nullptr ? source(given->operand, given->spec.type) : kZeroRef;
}

Ref Decoder::predicate(Purpose purpose, bool& flipped) {
  const MatchedOperand* given = take(purpose);
  return given != nullptr ? predicate(given->operand, flipped) : kZeroRef;
}

Ref Decoder::destination(Purpose purpose) {
  const MatchedOperand* given = take(purpose);
  if (given == nullptr) return kSinkRef;
  if (given->spec.role == Role::predicate_destination) return destination_predicate(given->operand);
  return destination(given->operand, ptx::byte_width(given->spec.type));
}

bool Decoder::address(Code& code, Purpose purpose) {
  const MatchedOperand* given = take(purpose);
  return given != nullptr && address(code, given->operand, given->spec.space);
}

AddressOperand Decoder::address_operand(Purpose purpose) {
  const MatchedOperand* given = take(purpose);
  if (given == nullptr) return {};
  // An address in tensor memory is one word, as in shared memory.
  const Space space = given->spec.role == Role::tensor_memory ? Space::shared : given->spec.space;
  Code code;
  if (!address(code, given->operand, space)) refuse("an address that no instruction of this kind takes");
  return {code.a, code.immediate, code.wide_address, code.narrow, code.space, code.address};
}

// The address of a tensor map, which may be in any space.
AddressOperand Decoder::generic_address_operand(Purpose purpose) {
  const MatchedOperand* given = take(purpose);
  if (given == nullptr) return {};
  Code code;
  if (!address(code, given->operand, Space::generic)) refuse("an address that no instruction of this kind takes");
  return {code.a, code.immediate, code.wide_address, code.narrow, code.space, code.address};
}

// {a, b, c, d}, the components of a vector register, or one register.
RegisterList Decoder::register_list(Purpose purpose) {
  const MatchedOperand* given = take(purpose);
  if (given == nullptr) return {};
  const bool is_list = given->spec.role == Role::vector;
  const Role role = is_list ? validator_.child(given->spec, 0).role : given->spec.role;
  const Type type = is_list ? bits_of(given->spec.type) : given->spec.type;
  std::vector<Ref> refs;
  for (unsigned i = 0; i < element_count(given->operand); ++i) {
    const Operand each = element(given->operand, i);
    refs.push_back(role == Role::destination ? destination(each, ptx::byte_width(type)) : source(each, type));
  }
  return add_refs(refs);
}

RegisterList Decoder::add_refs(const std::vector<Ref>& refs) {
  const RegisterList list{static_cast<uint32_t>(image_.refs.size()), static_cast<uint32_t>(refs.size())};
  image_.refs.insert(image_.refs.end(), refs.begin(), refs.end());
  return list;
}

// Elements of a list, of a vector register, or of a special register with components. Any other operand is one element.
unsigned Decoder::element_count(const Operand& operand) const {
  if (operand.kind == OperandKind::vector) return operand.child_count;
  if (operand.component) return 1;
  if (operand.kind == OperandKind::reg) return function_->registers[operand.id].vector;
  const bool has_components =
      operand.kind == OperandKind::special && ptx::is_vector(static_cast<ptx::SpecialRegister>(operand.id));
  return has_components ? 4 : 1;
}

Operand Decoder::element(const Operand& operand, unsigned index) const {
  if (operand.kind == OperandKind::vector) return function_->children(operand)[index];
  Operand part = operand;
  if (element_count(operand) > 1) part.component = static_cast<uint8_t>("xyzw"[index % 4]);
  return part;
}

// Assigns the operands of an instruction on registers: results to dst and dst2, sources to a, b, c and d in order, the
// mask of lanes to d, a required constant to `immediate`.
Decoder::Placed Decoder::place(Code& code) {
  Ref* const sources[] = {&code.a, &code.b, &code.c, &code.d};
  Placed placed;
  for (size_t i = 0; i < operands_.size(); ++i) {
    const auto& [item, given] = operands_[i];
    taken_ |= uint64_t{1} << i;
    Operand operand = given;
    if (item.selector != ptx::Selector::none && operand.component == 's') operand.component = 0, operand.value = 0;
    if (item.may_negate) operand.negated = false;
    bool flipped = false;
    switch (item.purpose) {
      case Purpose::result:
      case Purpose::second_result: {
        Ref& result = item.purpose == Purpose::result ? code.dst : code.dst2;
        if (item.role == Role::predicate_destination) {
          result = destination_predicate(operand);
        } else {
          code.element_bytes = static_cast<uint8_t>(std::max(2u, ptx::byte_width(item.type)));
          result = destination(operand, code.element_bytes);
        }
        break;
      }
      case Purpose::immediate:
        code.immediate = operand.value;
        break;
      case Purpose::mask:
        code.d = source(operand, item.type);
        break;
      case Purpose::source:
      case Purpose::predicate: {
        PTXKIT_CHECK(placed.count < std::size(sources), "a form has more sources than a Code");
        const bool is_predicate = item.role == Role::predicate || item.role == Role::predicate_or_constant;
        *sources[placed.count] = is_predicate ? predicate(operand, flipped) : source(operand, item.type);
        if (flipped) placed.flipped |= 1u << placed.count;
        ++placed.count;
        break;
      }
      default:
        taken_ &= ~(uint64_t{1} << i);
    }
  }
  return placed;
}

uint64_t Decoder::literal(const Operand& operand, Type type) const {
  const unsigned width = ptx::bit_width(type);
  if (operand.kind == OperandKind::integer) {
    if (is_float(type) && operand.value != 0) {
      // An integer in place of a floating point number stands for its value.
      auto number = static_cast<double>(static_cast<int64_t>(operand.value));
      if (width == 64) return std::bit_cast<uint64_t>(number);
      if (width == 32) return std::bit_cast<uint32_t>(static_cast<float>(number));
    }
    return operand.value;
  }
  if (operand.kind == OperandKind::float64 && width == 32)
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(operand.value)));
  if (operand.kind == OperandKind::float32 && width == 64)
    return std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(operand.value))));
  return operand.value;
}

Ref Decoder::special(const Operand& operand, unsigned bytes) {
  using S = ptx::SpecialRegister;
  const auto which = static_cast<S>(operand.id);
  const unsigned axis = operand.component ? static_cast<unsigned>(operand.component - 'x') : 0;
  auto axis_of = [&](SpecialSlot x) {
    if (operand.component == 'w') return special_ref(SpecialSlot::zero);
    return special_ref(static_cast<SpecialSlot>(static_cast<unsigned>(x) + axis));
  };
  auto clock = [&](SpecialSlot slot) {
    reads_clock_ = true;
    return special_ref(slot);
  };
  const bool wide = which == S::gridid || which == S::clock64 || which == S::globaltimer;
  // Special registers that were 16 bits wide in PTX 1.x may still be read so.
  if (bytes == 2 && (which == S::tid || which == S::ntid || which == S::ctaid || which == S::nctaid))
    return narrowed(special(operand, 4));
  if (bytes != (wide ? 8u : 4u) && !(which == S::gridid && bytes == 4)) {
    refuse(fmt::format("{} is read with {} bits", ptx::text(which), bytes * 8));
    return kZeroRef;
  }
  switch (which) {
    case S::tid:
      return axis_of(SpecialSlot::tid_x);
    case S::ntid:
      return axis_of(SpecialSlot::ntid_x);
    case S::ctaid:
      return axis_of(SpecialSlot::ctaid_x);
    case S::nctaid:
      return axis_of(SpecialSlot::nctaid_x);
    case S::laneid:
      return special_ref(SpecialSlot::laneid);
    case S::warpid:
      return special_ref(SpecialSlot::warpid);
    case S::nwarpid:
      return special_ref(SpecialSlot::nwarpid);
    case S::smid:
      return special_ref(SpecialSlot::smid);
    case S::nsmid:
      return special_ref(SpecialSlot::nsmid);
    case S::gridid:
      return special_ref(SpecialSlot::gridid);
    case S::lanemask_eq:
      return special_ref(SpecialSlot::lanemask_eq);
    case S::lanemask_le:
      return special_ref(SpecialSlot::lanemask_le);
    case S::lanemask_lt:
      return special_ref(SpecialSlot::lanemask_lt);
    case S::lanemask_ge:
      return special_ref(SpecialSlot::lanemask_ge);
    case S::lanemask_gt:
      return special_ref(SpecialSlot::lanemask_gt);
    case S::clock:
      return clock(SpecialSlot::clock);
    case S::clock_hi:
      return clock(SpecialSlot::clock_hi);
    case S::clock64:
      return clock(SpecialSlot::clock64);
    case S::globaltimer:
      return clock(SpecialSlot::globaltimer);
    case S::globaltimer_lo:
      return clock(SpecialSlot::globaltimer_lo);
    case S::globaltimer_hi:
      return clock(SpecialSlot::globaltimer_hi);
    case S::cluster_ctaid:
      return axis_of(SpecialSlot::cluster_ctaid_x);
    case S::cluster_nctaid:
      return axis_of(SpecialSlot::cluster_nctaid_x);
    case S::clusterid:
      return axis_of(SpecialSlot::clusterid_x);
    case S::nclusterid:
      return axis_of(SpecialSlot::nclusterid_x);
    case S::cluster_ctarank:
      return special_ref(SpecialSlot::cluster_ctarank);
    case S::cluster_nctarank:
      return special_ref(SpecialSlot::cluster_nctarank);
    // Where cooperative_groups keeps the barrier of a grid, and its scratch area in shared memory.
    case S::envreg1:
      image_.uses_grid_workspace = true;
      return special_ref(SpecialSlot::grid_workspace_hi);
    case S::envreg2:
      image_.uses_grid_workspace = true;
      return special_ref(SpecialSlot::grid_workspace_lo);
    case S::reserved_smem_offset_1:
      image_.uses_reserved_shared = true;
      return special_ref(SpecialSlot::reserved_shared);
    case S::aggr_smem_size:
      return special_ref(SpecialSlot::aggregate_smem);
    case S::dynamic_smem_size:
      return special_ref(SpecialSlot::dynamic_smem);
    case S::total_smem_size:
      return special_ref(SpecialSlot::total_smem);
    default:
      break;
  }
  refuse(fmt::format("the emulator has no special register {}", ptx::text(which)));
  return kZeroRef;
}

// The variable's address plus `addend` as a constant slot. A launch fills in the address of a shared variable.
Ref Decoder::variable_address(ptx::VariableId id, Space as, uint64_t addend, unsigned bytes) {
  const ptx::Variable& variable = module_.variables[id];
  if (!layout_.placed[id]) refuse(fmt::format("'{}' has no address", variable.name));
  const bool generic = as == Space::generic;
  switch (variable.space) {
    case Space::shared: {
      if (generic) addend += kSharedWindow;
      auto [it, fresh] = shared_constants_.try_emplace({id, addend, bytes}, kNoRef);
      if (fresh) {
        it->second = new_constant(0, bytes);
        image_.shared_constants.push_back({it->second, static_cast<uint8_t>(bytes), id, addend});
      }
      return it->second;
    }
    case Space::constant:
      return constant(layout_.offset[id] + addend + (generic ? kConstWindow : 0), bytes);
    case Space::param:
      return constant(layout_.offset[id] + addend + (generic ? kParamWindow : 0), bytes);
    default:
      return constant(layout_.offset[id] + addend, bytes);
  }
}

// A source whose register has exactly the width of `type`.
Ref Decoder::source(const Operand& operand, Type type) {
  const unsigned bytes = ptx::byte_width(type);
  uint8_t width = 0;
  Ref ref = source_any(operand, type, width);
  if (width != std::max(2u, bytes)) refuse(fmt::format("a source has {} bits, expected {}", width * 8, bytes * 8));
  return ref;
}

// A register with an offset as an operand: a Code before the instruction computes the sum into a slot of its own.
Ref Decoder::sum(Ref base, uint64_t offset, unsigned bytes) {
  FunctionImage& function = image_.functions[function_id_];
  Code code;
  code.a = base;
  code.b = constant(offset, bytes);
  code.dst = function.frame_units;
  code.element_bytes = static_cast<uint8_t>(bytes);
  code.counts = false;
  function.frame_units += units(bytes);
  select_integer(code, Op::add, bytes == 8 ? Type::u64 : bytes == 4 ? Type::u32 : Type::u16, {});
  emit(code);
  return code.dst;
}

// The low half of a word; a Code before the instruction moves it to a slot of its own.
Ref Decoder::narrowed(Ref word) {
  Code code;
  code.a = word;
  code.dst = unwritten(2);
  code.element_bytes = code.register_bytes = 2;
  code.source_bytes = 4;
  code.counts = false;
  select_convert(code, Type::u16, Type::u32, {});
  emit(code);
  return code.dst;
}

// A source of any width; sets `width` to that of its register.
Ref Decoder::source_any(const Operand& operand, Type type, uint8_t& width) {
  const unsigned bytes = std::max(2u, ptx::byte_width(type));
  width = static_cast<uint8_t>(bytes);
  if (operand.negated) refuse("a negated source that is no predicate");
  switch (operand.kind) {
    case OperandKind::reg:
      if (function_->registers[operand.id].vector > 1 && !operand.component) refuse("a vector register as a scalar");
      width = static_cast<uint8_t>(register_bytes(operand.id));
      if (!operand.component && operand.value != 0) return sum(slot(operand.id, 0), operand.value, width);
      return slot(operand.id, operand.component);
    case OperandKind::integer:
    case OperandKind::float32:
    case OperandKind::float64:
      return constant(literal(operand, type), bytes);
    case OperandKind::special:
      return special(operand, bytes);
    case OperandKind::symbol: {
      const ptx::Variable& variable = module_.variables[operand.id];
      if (lives_in_frame(module_, variable)) {
        refuse("the address of a local variable can only be moved");
        return kZeroRef;
      }
      return variable_address(operand.id, variable.space, operand.value, bytes);
    }
    case OperandKind::function:
      return constant(function_address(operand.id), bytes);
    default:
      refuse("an operand of a kind that is not expected here");
      return kZeroRef;
  }
}

Ref Decoder::predicate(const Operand& operand, bool& flipped) {
  flipped = operand.negated;
  if (operand.kind == OperandKind::integer) return constant(operand.value & 1 ? 0xffffffff : 0, 4);
  if (operand.kind == OperandKind::special &&
      static_cast<ptx::SpecialRegister>(operand.id) == ptx::SpecialRegister::is_explicit_cluster)
    return special_ref(SpecialSlot::explicit_cluster);
  if (operand.kind != OperandKind::reg || function_->registers[operand.id].type != Type::pred) {
    refuse("expected a predicate");
    return kZeroRef;
  }
  return slot(operand.id, 0);
}

Ref Decoder::destination(const Operand& operand, unsigned bytes) {
  if (operand.kind == OperandKind::sink) return kSinkRef;
  if (operand.kind != OperandKind::reg) {
    refuse("the destination is no register");
    return kSinkRef;
  }
  unsigned have = register_bytes(operand.id);
  if (bytes && have != std::max(2u, bytes))
    refuse(fmt::format("the destination has {} bits, expected {}", have * 8, bytes * 8));
  return slot(operand.id, operand.component);
}

Ref Decoder::destination_predicate(const Operand& operand) {
  if (operand.kind == OperandKind::sink) return kSinkRef;
  if (operand.kind != OperandKind::reg || function_->registers[operand.id].type != Type::pred) {
    refuse("the destination is no predicate");
    return kSinkRef;
  }
  return slot(operand.id, 0);
}

// [register + n], [variable + n], [n]
bool Decoder::address(Code& code, const Operand& operand, Space space) {
  if (operand.kind != OperandKind::address) return false;
  code.address = static_cast<uint32_t>(image_.addresses.size());
  image_.addresses.push_back(operand.at);
  code.immediate = operand.value;
  code.wide_address = true;
  if (space == Space::param && !function_->is_entry) space = Space::local;
  switch (operand.base) {
    case AddressBase::reg: {
      unsigned bytes = register_bytes(operand.id);
      if (bytes != 4 && bytes != 8) return false;
      code.wide_address = bytes == 8;
      code.narrow = narrow_ && bytes == 4;
      code.a = slot(operand.id, operand.component);
      break;
    }
    case AddressBase::variable: {
      const ptx::Variable& variable = module_.variables[operand.id];
      if (lives_in_frame(module_, variable)) {
        // The offset in the frame; kFrameBase64Ref holds the frame's base.
        code.a = kFrameBase64Ref;
        code.immediate += layout_.offset[operand.id];
        if (space == Space::generic)
          code.immediate += kLocalWindow;
        else
          space = Space::local;
      } else {
        code.a = variable_address(operand.id, space, 0, 8);
      }
      break;
    }
    case AddressBase::immediate:
      code.a = constant(narrow_ && (space == Space::generic || space == Space::global)
                            ? widen_address(static_cast<uint32_t>(operand.value))
                            : operand.value,
                        8);
      code.immediate = 0;
      break;
    default:
      return false;
  }
  code.space = space;
  return true;
}

}  // namespace ptxkit::emulator
