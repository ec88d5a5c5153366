// The decoder: assigns slots to registers, turns operands into Refs, and selects a handler for each instruction. It
// refuses what it does not fully support, and names the place.
#include "runtime/emulator/decode/decode.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/emulator/engine/engine.hpp"
#include "runtime/emulator/instructions/memory/access.hpp"
#include "support/check.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Family;
using ptx::Mod;
using ptx::Op;
using ptx::Purpose;
using ptx::Type;

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
    if (image_.functions[id].has_body) decode_function(id);
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

Ref Decoder::slot(ptx::RegId id, uint8_t component) {
  Ref first = slots_[function_id_][id];
  if (!component) return first;
  uint32_t index = component == 'w' ? 3 : static_cast<uint32_t>(component - 'x');
  const ptx::Register& reg = function_->registers[id];
  if (index >= reg.vector) {  // ptxas accepts it
    refuse(fmt::format("'{}' has {} components, not '.{}'", reg.name(), reg.vector, static_cast<char>(component)));
    return first;
  }
  return first + index * units(register_bytes(id));
}

Ref Decoder::constant(uint64_t value, unsigned bytes) {
  auto [it, fresh] = constants_.try_emplace({value, bytes}, kNoRef);
  if (fresh) it->second = new_constant(value, bytes);
  return it->second;
}

Ref Decoder::new_constant(uint64_t value, unsigned bytes) {
  size_t begin = image_.constants.size();
  image_.constants.resize(begin + size_t{units(bytes)} * kUnitBytes);
  for (unsigned lane = 0; lane < kLanes; ++lane)
    std::memcpy(image_.constants.data() + begin + size_t{lane} * bytes, &value, std::min(bytes, 8u));
  return kConstantRef | static_cast<uint32_t>(begin / kUnitBytes);
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
  next_may_reconverge_ = false;
  find_watched();
  for (const ptx::Instruction& instruction : function_->instructions) {
    code_of_.push_back(static_cast<uint32_t>(image_.codes.size()));
    decode_instruction(instruction);
  }
  // Falling off the end of a function returns.
  code_of_.push_back(static_cast<uint32_t>(image_.codes.size()));
  Code end;
  end.kind = Kind::ret;
  end.counts = false;
  end.may_reconverge = true;
  image_.codes.push_back(end);
  image_.sites.push_back(
      {id, static_cast<uint32_t>(function_->instructions.size() ? function_->instructions.size() - 1 : 0)});
  out.end_code = static_cast<uint32_t>(image_.codes.size());
  fix_branches(first);
}

// Branch targets are LabelIds until every instruction has its place; this replaces them.
void Decoder::fix_branches(uint32_t first_code) {
  auto place = [&](uint32_t label) { return code_of_[function_->labels[label].target]; };
  for (const ptx::Label& label : function_->labels) image_.codes[code_of_[label.target]].may_reconverge = true;
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

// Matches the instruction to a row of the ISA table, for itself and its operands. Returns false if no row fits.
bool Decoder::read_operands() {
  operands_.clear();
  taken_ = 0;
  if (instruction_->form == ptx::kNone) return false;
  const auto [entry, is_new] = rows_.try_emplace({instruction_->form, instruction_->spelling});
  row_ = &entry->second;
  auto& [opcode, candidate, may_be_unemulated] = entry->second;
  if (is_new) {
    opcode = ptx::read_opcode(instruction_->spelling);
    candidate = validator_.row_of(*instruction_, opcode.words);
    may_be_unemulated =
        std::ranges::find(ptx::unemulated(), instruction_->op, &ptx::Unemulated::op) != ptx::unemulated().end();
  }
  PTXKIT_CHECK(validator_.read(*function_, *instruction_, candidate, operands_),
               "an instruction does not fit its form");
  return true;
}

bool Decoder::read_row() {
  if (!read_operands()) {
    refuse("it fits no form of the ISA table");
    return false;
  }
  ignore_operand(Purpose::policy);  // a hint, whatever the instruction
  if (!row_->may_be_unemulated) return true;
  std::string roles;
  for (const ptx::MatchedOperand& each : operands_) roles += each.spec.letter;
  const ptx::Unemulated* missing = ptx::find_unemulated(instruction_->op, row_->opcode.words, roles);
  if (missing == nullptr) return true;
  refuse(fmt::format("{} is not emulated", missing->what));
  return false;
}

bool Decoder::decode_family(Code& code) {
  switch (ptx::family(instruction_->op)) {
    case Family::address:
      return address_conversion(code);
    case Family::arithmetic:
      return arithmetic(code);
    case Family::atomic:
      return atomic(code);
    case Family::barrier:
      return barrier(code);
    case Family::cluster:
      return cluster_address(code);
    case Family::comparison:
      return compare(code);
    case Family::control:
      return control(code);
    case Family::conversion:
      return convert(code);
    case Family::copy:
      return asynchronous_copy(code);
    case Family::fence:
      return fence(code);
    case Family::hint:
      ignore_all_operands();
      code.run = do_nothing;
      code.undefined = Undefined::handler;
      return true;
    case Family::matrix:
      return matrix(code);
    case Family::mbarrier:
      return mbarrier(code);
    case Family::memory:
      return memory(code);
    case Family::move:
      return move(code);
    case Family::multimem:
      // multimem: the object behind the address has one copy, on this device.
      return words().has(Mod::red) ? atomic(code) : memory(code);
    case Family::policy:
      // Cache policies are opaque hints, which the instructions that take them ignore.
      code.dst = destination(Purpose::result);
      ignore_all_operands();
      code.a = constant(uint64_t{1} << 63, 8);
      return select_logic(code, Op::mov, Type::b64, {});
    case Family::stack:
      return stack(code);
    case Family::texture:
      return texture(code);
    case Family::video:
      return video(code);
    case Family::warp:
      return collective(code);
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
  const bool known = read_row() && decode_family(code);
  if (!known || (code.kind == Kind::simple && !code.run)) refuse("this form is not implemented");
  refuse_untaken_operands();
  if (refused_) {
    Code refused;
    refused.guard = code.guard;
    refused.guard_flip = code.guard_flip;
    refused.kind = Kind::unsupported;
    refused.target = static_cast<uint32_t>(image_.refusals.size() - 1);
    code = refused;
  }
  code.may_reconverge = next_may_reconverge_;
  next_may_reconverge_ = code.kind != Kind::simple && code.kind != Kind::branch;
  if (reads_clock_) {
    Code refresh;
    add_clock_refresh(refresh);
    refresh.may_reconverge = code.may_reconverge;
    emit(refresh);
    code.may_reconverge = false;
  }
  emit(code);
}

}  // namespace ptxkit::emulator
