// The decoder: registers get slots, operands become Refs, each instruction a handler. Whatever it does not know it
// refuses, with the place; nothing runs that is only half understood.
#include "runtime/backend/emulator/decode.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "runtime/backend/emulator/access.hpp"
#include "runtime/backend/emulator/engine.hpp"
#include "support/check.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::AddressBase;
using ptx::Family;
using ptx::Mod;
using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;
using ptx::OperandSpec;
using ptx::Role;
using ptx::Space;
using ptx::Type;
using ptx::TypeKind;

bool is_float(Type type) { return ptx::kind(type) == TypeKind::floating; }

void do_nothing(Warp&, const Code&, uint32_t) {}

}  // namespace

Decoder::Decoder(ProgramImage& image, const Layout& layout)
    : image_(image),
      module_(*image.module),
      layout_(layout),
      narrow_(image.module->address_size == 32),
      validator_(module_) {}

void Decoder::refuse(const std::string& why) {
  if (refused_) return;
  refused_ = true;
  image_.refusals.push_back(fmt::format("cannot run '{}': {}", instruction_->spelling, why));
}

void Decoder::decode_all() {
  constant(0, 16);  // kZeroRef
  slots_.resize(module_.functions.size());
  for (ptx::FunctionId id = 0; id < module_.functions.size(); ++id) layout_registers(id);
  for (ptx::FunctionId id = 0; id < module_.functions.size(); ++id)
    if (module_.functions[id].has_body) decode_function(id);
  size_t slots =
      std::max<size_t>(image_.constants.size() / kUnitBytes, kSpecialUnits * static_cast<size_t>(SpecialSlot::count));
  image_.zeros.assign(slots + 8, 0);
}

void Decoder::layout_registers(ptx::FunctionId id) {
  const ptx::Function& function = module_.functions[id];
  FunctionImage& out = image_.functions[id];
  uint32_t next = kFirstRegister;
  for (ptx::RegId reg = 0; reg < function.registers.size(); ++reg) {
    const ptx::Register& each = function.registers[reg];
    unsigned bytes = each.type == Type::pred ? 2 : std::max(2u, ptx::byte_width(each.type));
    slots_[id].push_back(next);
    out.slots.emplace_back(next, reg);
    next += units(bytes) * each.vector;
  }
  out.frame_units = next;
}

unsigned Decoder::register_bytes(ptx::RegId id) const {
  const ptx::Register& reg = function_->registers[id];
  return reg.type == Type::pred ? 0 : std::max(2u, ptx::byte_width(reg.type));
}

Ref Decoder::slot(ptx::RegId id, uint8_t component) const {
  Ref first = slots_[function_id_][id];
  if (!component) return first;
  uint32_t index = component == 'w' ? 3 : static_cast<uint32_t>(component - 'x');
  return first + index * units(register_bytes(id));
}

Ref Decoder::constant(uint64_t value, unsigned bytes) {
  auto [it, fresh] = constants_.try_emplace({value, bytes}, kNoRef);
  if (!fresh) return it->second;
  size_t begin = image_.constants.size();
  image_.constants.resize(begin + size_t{units(bytes)} * kUnitBytes);
  for (unsigned lane = 0; lane < kLanes; ++lane)
    std::memcpy(image_.constants.data() + begin + size_t{lane} * bytes, &value, std::min(bytes, 8u));
  it->second = kConstantRef | static_cast<uint32_t>(begin / kUnitBytes);
  return it->second;
}

uint64_t Decoder::literal(const Operand& operand, Type type) const {
  const unsigned width = ptx::bit_width(type);
  if (operand.kind == OperandKind::integer) {
    if (is_float(type) && operand.value != 0) {
      // An integer where a floating point number is wanted stands for its value.
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
  // What was 16 bits wide in PTX 1.x may still be read so.
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
    // Where cooperative_groups keeps the barrier of a grid, and its scratch in shared memory.
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
      return special_ref(SpecialSlot::total_smem);
    case S::dynamic_smem_size:
      return special_ref(SpecialSlot::dynamic_smem);
    case S::total_smem_size:
      return special_ref(SpecialSlot::total_smem);
    default:
      break;
  }
  refuse(fmt::format("special register {} is not there", ptx::text(which)));
  return kZeroRef;
}

uint64_t Decoder::variable_address(ptx::VariableId id, Space as) const {
  const ptx::Variable& variable = module_.variables[id];
  uint64_t address = layout_.offset[id];
  if (as != Space::generic) return address;
  switch (variable.space) {
    case Space::shared:
      return address + kSharedWindow;
    case Space::constant:
      return address + kConstWindow;
    case Space::param:
      return address + kParamWindow;
    default:
      return address;
  }
}

// A source whose register is exactly as wide as `type`.
Ref Decoder::source(const Operand& operand, Type type) {
  const unsigned bytes = ptx::byte_width(type);
  uint8_t width = 0;
  Ref ref = source_any(operand, type, width);
  if (width != std::max(2u, bytes)) refuse(fmt::format("a source has {} bits, expected {}", width * 8, bytes * 8));
  return ref;
}

// A register with an offset as an operand: the sum goes into a slot of its own before the instruction.
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

// The low half of a word, in a slot of its own before the instruction.
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

// A source of any width, which `register_bytes` gets.
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
      if (!layout_.placed[operand.id]) refuse(fmt::format("'{}' has no address", variable.name));
      return constant(variable_address(operand.id, variable.space) + operand.value, bytes);
    }
    case OperandKind::function:
      return constant(kFunctionAddress + operand.id, bytes);
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

// Operands of an instruction on registers, by what the table says of each: results go to dst and dst2, sources to a, b,
// c and d in their order, a constant that has to be one to `immediate`.
Decoder::Placed Decoder::place(Code& code, Operands operands) {
  Ref* const sources[] = {&code.a, &code.b, &code.c, &code.d};
  Placed placed;
  auto one = [&](const OperandSpec& item, const Operand& operand, Ref& result) {
    bool flipped = false;
    PTXKIT_CHECK(placed.count < std::size(sources), "a form has more sources than a Code");
    switch (item.role) {
      case Role::destination:
        code.element_bytes = static_cast<uint8_t>(std::max(2u, ptx::byte_width(item.type)));
        result = destination(operand, code.element_bytes);
        return;
      case Role::predicate_destination:
        result = destination_predicate(operand);
        return;
      case Role::integer:
        code.immediate = operand.value;
        return;
      case Role::predicate:
      case Role::predicate_or_constant:
        *sources[placed.count] = predicate(operand, flipped);
        if (flipped) placed.flipped |= 1u << placed.count;
        break;
      default:
        *sources[placed.count] = source(operand, item.type);
    }
    ++placed.count;
  };
  for (size_t i = 0; i < operands.size(); ++i) {
    const OperandSpec& item = items_[i];
    if (item.role != Role::pair) {
      one(item, operands[i], code.dst);
    } else if (operands[i].kind != OperandKind::pair) {
      one(validator_.child(item, 0), operands[i], code.dst);
    } else {
      const auto both = function_->children(operands[i]);
      one(validator_.child(item, 0), both[0], code.dst);
      one(validator_.child(item, 1), both[1], code.dst2);
    }
  }
  return placed;
}

// [register + n], [variable + n], [n]
bool Decoder::address(Code& code, const Operand& operand, Space space) {
  if (operand.kind != OperandKind::address) return false;
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
        // Its offset in the frame; the frame's base is a register.
        code.a = kFrameBase64Ref;
        code.immediate += layout_.offset[operand.id];
        if (space == Space::generic)
          code.immediate += kLocalWindow;
        else
          space = Space::local;
      } else {
        if (!layout_.placed[operand.id]) refuse(fmt::format("'{}' has no address", variable.name));
        code.a = constant(variable_address(operand.id, space), 8);
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

void Decoder::emit(const Code& code) {
  Code out = code;
  if (!out.checked) out.checked = out.run;
  image_.codes.push_back(out);
  image_.sites.push_back({function_id_, static_cast<uint32_t>(instruction_ - function_->instructions.data())});
}

void Decoder::decode_function(ptx::FunctionId id) {
  function_id_ = id;
  function_ = &module_.functions[id];
  FunctionImage& out = image_.functions[id];
  for (ptx::VariableId each : function_->parameters)
    if (!function_->is_entry) add_parameter(out.parameters, each);
  for (ptx::VariableId each : function_->results) add_parameter(out.results, each);
  const auto first = static_cast<uint32_t>(image_.codes.size());
  out.first_code = first;
  code_of_.clear();
  next_meets_ = false;
  find_watched();
  for (const ptx::Instruction& instruction : function_->instructions) {
    code_of_.push_back(static_cast<uint32_t>(image_.codes.size()));
    decode_instruction(instruction);
  }
  // Falling off the end returns.
  code_of_.push_back(static_cast<uint32_t>(image_.codes.size()));
  Code end;
  end.kind = Kind::ret;
  end.counts = false;
  end.meeting = true;
  image_.codes.push_back(end);
  image_.sites.push_back(
      {id, static_cast<uint32_t>(function_->instructions.size() ? function_->instructions.size() - 1 : 0)});
  out.end_code = static_cast<uint32_t>(image_.codes.size());
  fix_branches(first);
}

// Branch targets were LabelIds until every instruction had its place.
void Decoder::fix_branches(uint32_t first_code) {
  auto place = [&](uint32_t label) { return code_of_[function_->labels[label].target]; };
  for (const ptx::Label& label : function_->labels) image_.codes[code_of_[label.target]].meeting = true;
  for (size_t i = first_code; i < image_.codes.size(); ++i) {
    Code& code = image_.codes[i];
    if (code.kind == Kind::branch) code.target = place(code.target);
    if (code.kind == Kind::branch_table) {
      std::vector<uint32_t> targets;
      for (uint32_t label : function_->tables[code.target].targets) targets.push_back(place(label));
      code.target = static_cast<uint32_t>(image_.tables.size());
      image_.tables.push_back(std::move(targets));
    }
  }
}

// What the row of the ISA table that the instruction fits says of it; false where it is refused.
bool Decoder::read_row() {
  if (instruction_->form == ptx::kNone) {
    refuse("it fits no form of the ISA table");
    return false;
  }
  const auto [entry, is_new] = rows_.try_emplace({instruction_->spelling, instruction_->form});
  auto& [opcode, candidate] = entry->second;
  if (is_new) {
    opcode = ptx::read_opcode(instruction_->spelling);
    candidate = validator_.row_of(*instruction_, opcode.words);
  }
  PTXKIT_CHECK(validator_.read(*function_, *instruction_, candidate, items_), "an instruction does not fit its form");
  // `d|_` of one result is d, and {a} of one operand is a.
  const Operands written = function_->operands(*instruction_);
  operands_.assign(written.begin(), written.end());
  for (size_t i = 0; i < items_.size(); ++i) {
    const bool is_pair = operands_[i].kind == OperandKind::pair && items_[i].role != Role::pair;
    const bool is_list =
        operands_[i].kind == OperandKind::vector && operands_[i].child_count == 1 && items_[i].role != Role::vector;
    if (is_pair || is_list) operands_[i] = Operand(function_->children(written[i])[0]);
  }
  if (const ptx::Unemulated* row = ptx::find_unemulated(instruction_->op, opcode.words, items_)) {
    refuse(fmt::format("{} is not emulated", row->what));
    return false;
  }
  return true;
}

bool Decoder::decode_family(Code& code, Operands operands) {
  switch (ptx::family(instruction_->op)) {
    case Family::address:
      return address_conversion(code, operands);
    case Family::arithmetic:
      return arithmetic(code, operands);
    case Family::atomic:
      return atomic(code, operands);
    case Family::barrier:
      return barrier(code, operands);
    case Family::cluster:
      return cluster_address(code, operands);
    case Family::comparison:
      return compare(code, operands);
    case Family::control:
      return control(code, operands);
    case Family::conversion:
      return convert(code, operands);
    case Family::copy:
      return asynchronous_copy(code, operands);
    case Family::fence:
      return fence(code);
    case Family::hint:
      code.run = do_nothing;
      code.undefined = Undefined::handler;
      return true;
    case Family::matrix:
      return matrix(code, operands);
    case Family::mbarrier:
      return mbarrier(code, operands);
    case Family::memory:
      return memory(code, operands);
    case Family::move:
      return move(code, operands);
    case Family::multimem:
      // The object behind the address has one copy: that of this device.
      return words().has(Mod::red) ? atomic(code, operands) : memory(code, operands);
    case Family::policy:
      // Opaque, and a hint: what uses it does not look at it.
      code.dst = destination(operands[0], 8);
      code.a = constant(uint64_t{1} << 63, 8);
      return select_logic(code, Op::mov, Type::b64, {});
    case Family::stack:
      return stack(code, operands);
    case Family::texture:
      return texture(code, operands);
    case Family::video:
      return video(code, operands);
    case Family::warp:
      return collective(code, operands);
  }
  return false;
}

void Decoder::decode_instruction(const ptx::Instruction& instruction) {
  instruction_ = &instruction;
  refused_ = false;
  reads_clock_ = false;
  watch();
  Code code;
  if (instruction.guard) {
    code.guard = slot(instruction.guard.reg, 0);
    code.guard_flip = instruction.guard.negated ? 0xffffffff : 0;
  }
  const bool known = read_row() && decode_family(code, operands_);
  if (!known || (code.kind == Kind::simple && !code.run)) refuse("this form is not implemented");
  if (refused_) {
    Code refused;
    refused.guard = code.guard;
    refused.guard_flip = code.guard_flip;
    refused.kind = Kind::unsupported;
    refused.target = static_cast<uint32_t>(image_.refusals.size() - 1);
    code = refused;
  }
  code.meeting = next_meets_;
  next_meets_ = code.kind != Kind::simple && code.kind != Kind::branch;
  if (reads_clock_) {
    Code refresh;
    add_clock_refresh(refresh);
    refresh.meeting = code.meeting;
    emit(refresh);
    code.meeting = false;
  }
  emit(code);
}

}  // namespace ptxkit::emulator
