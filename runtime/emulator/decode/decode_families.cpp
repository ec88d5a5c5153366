// The decoder for the families of instructions. PTX ISA 9.0, 9.7.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "analyzer/ptx/facts.hpp"
#include "runtime/emulator/core/state.hpp"
#include "runtime/emulator/decode/decode.hpp"
#include "runtime/emulator/engine/builtins.hpp"
#include "runtime/emulator/instructions/memory/access.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Purpose;
using ptx::Space;
using ptx::Type;
using ptx::TypeKind;

bool is_float(Type type) { return ptx::kind(type) == TypeKind::floating; }

Order order_of(const Words& words) {
  if (words.has(Mod::acq_rel)) return Order::acq_rel;
  if (words.has(Mod::acquire)) return Order::acquire;
  if (words.has(Mod::release)) return Order::release;
  if (words.has(Mod::relaxed) || words.has(Mod::volatile_) || words.has(Mod::mmio)) return Order::relaxed;
  return Order::weak;
}

Scope scope_of(const Words& words) {
  if (words.has(Mod::cta)) return Scope::cta;
  return words.has(Mod::cluster) ? Scope::cluster : Scope::gpu;
}

}  // namespace

bool Decoder::control(Code& code) {
  switch (instruction_->op) {
    case Op::bra:
      code.kind = Kind::branch;
      if (const auto* label = take(Purpose::target)) code.target = label->operand.id;
      return true;
    case Op::brx:
      code.kind = Kind::branch_table;
      code.a = source(Purpose::source);
      if (const auto* table = take(Purpose::target)) code.target = table->operand.id;
      return true;
    case Op::call:
      return call(code);
    case Op::ret:
      code.kind = Kind::ret;
      return true;
    case Op::exit:
      code.kind = Kind::exit;
      return true;
    case Op::trap:
      code.kind = Kind::trap;
      return true;
    case Op::brkpt:
      code.kind = Kind::breakpoint;
      return true;
    case Op::nanosleep:
      code.kind = Kind::yield;
      ignore_operand(Purpose::source);
      return true;
    default:
      return false;
  }
}

// How a register is passed: each component of a vector separately.
void Decoder::add_register(std::vector<CallValue>& values, ptx::RegId id, uint8_t component) {
  const ptx::Register& reg = function_->registers[id];
  const bool is_predicate = reg.type == Type::pred;
  const auto bytes = static_cast<uint8_t>(is_predicate ? 4u : register_bytes(id));
  const unsigned count = component ? 1 : reg.vector;
  for (unsigned k = 0; k < count; ++k)
    values.push_back({.in_register = true,
                      .is_predicate = is_predicate,
                      .ref = slot(id, component) + k * units(bytes),
                      .bytes = bytes});
}

// How a parameter or result of a function is passed: a register, or bytes in the frame.
void Decoder::add_parameter(std::vector<CallValue>& values, ptx::VariableId id) {
  const ptx::Variable& variable = module_.variables[id];
  if (variable.space != Space::reg) {
    values.push_back({.offset = layout_.offset[id], .size_bytes = variable.size_bytes});
    return;
  }
  for (ptx::RegId reg = 0; reg < function_->registers.size(); ++reg)
    if (function_->registers[reg].name() == variable.name) return add_register(values, reg, 0);
  // A parameter that is never read has no register.
  values.push_back({.in_register = true, .ref = kSinkRef, .bytes = 8});
}

void Decoder::add_argument(std::vector<CallValue>& values, const Operand& operand) {
  CallValue value;
  if (operand.kind == OperandKind::symbol) {
    value.offset = layout_.offset[operand.id];
    value.size_bytes = module_.variables[operand.id].size_bytes;
    values.push_back(value);
    return;
  }
  value.in_register = true;
  if (operand.kind == OperandKind::reg) return add_register(values, operand.id, operand.component);
  if (operand.kind == OperandKind::sink) {
    value.ref = kSinkRef;
    value.bytes = 8;
  } else {
    value.ref = source_any(operand, Type::b64, value.bytes);
  }
  values.push_back(value);
}

bool Decoder::call(Code& code) {
  const ptx::CallParts parts = ptx::call_parts(*function_, *instruction_);
  if (!parts.target) return false;
  CallSite site;
  if (parts.results)
    for (const Operand& each : function_->children(*parts.results)) add_argument(site.results, each);
  if (parts.arguments)
    for (const Operand& each : function_->children(*parts.arguments)) add_argument(site.arguments, each);
  if (parts.target->kind == OperandKind::function) {
    code.kind = Kind::call;
    site.function = parts.target->id;
    Builtin builtin{};
    if (!module_.functions[site.function].has_body && find_builtin(module_.functions[site.function].name, builtin)) {
      code.kind = Kind::call_builtin;
      code.sub = static_cast<uint8_t>(builtin);
      image_.uses_heap |= builtin == Builtin::heap_allocate || builtin == Builtin::heap_release;
    } else if (!image_.functions[site.function].has_body) {
      refuse(fmt::format("'{}' has no body in this module", module_.functions[site.function].name));
      return true;
    }
  } else if (parts.target->kind == OperandKind::reg) {
    code.kind = Kind::call_indirect;
    uint8_t bytes = 0;
    code.a = source_any(*parts.target, Type::b64, bytes);
    code.wide_address = bytes == 8;
  } else {
    return false;
  }
  code.target = static_cast<uint32_t>(image_.calls.size());
  image_.calls.push_back(std::move(site));
  return true;
}

bool Decoder::barrier(Code& code) {
  const Words w = words();
  if (w.has(Mod::cluster)) {
    code.kind = w.has(Mod::arrive) ? Kind::cluster_arrive : Kind::cluster_wait;
    return true;
  }
  if (w.has(Mod::warp)) {
    code.kind = Kind::collective;
    code.sub = static_cast<uint8_t>(Collective::bar_warp);
    code.d = source(Purpose::mask);
    return true;
  }
  code.kind = Kind::barrier;
  code.aligned = instruction_->op == Op::bar || w.has(Mod::aligned);
  Barrier kind = w.has(Mod::arrive) ? Barrier::arrive : Barrier::sync;
  if (w.has(Mod::red)) {
    kind = w.has(Mod::popc) ? Barrier::reduce_popc : w.has(Mod::and_) ? Barrier::reduce_and : Barrier::reduce_or;
    code.dst = destination(Purpose::result);
    bool flipped = false;
    code.c = predicate(Purpose::predicate, flipped);
    code.immediate = flipped ? 0xffffffff : 0;
  }
  code.sub = static_cast<uint8_t>(kind);
  code.a = source(Purpose::barrier);
  if (has(Purpose::threads)) code.b = source(Purpose::threads);
  return true;
}

bool Decoder::collective(Code& code) {
  const Words w = words();
  code.kind = Kind::collective;
  code.aligned = !w.has(Mod::sync);  // the old forms take any lanes that are active
  const Placed placed = place(code);
  code.element_bytes = static_cast<uint8_t>(instruction_->op == Op::match ? ptx::byte_width(instruction_->type()) : 4);
  code.immediate = placed.flipped ? 0xffffffff : 0;
  Collective kind{};
  switch (instruction_->op) {
    case Op::shfl:
      kind = w.has(Mod::up)     ? Collective::shuffle_up
             : w.has(Mod::down) ? Collective::shuffle_down
             : w.has(Mod::bfly) ? Collective::shuffle_butterfly
                                : Collective::shuffle_index;
      break;
    case Op::vote:
      kind = w.has(Mod::all)   ? Collective::vote_all
             : w.has(Mod::any) ? Collective::vote_any
             : w.has(Mod::uni) ? Collective::vote_uni
                               : Collective::vote_ballot;
      break;
    case Op::match:
      kind = w.has(Mod::all) ? Collective::match_all : Collective::match_any;
      break;
    case Op::redux:
      kind = w.has(Mod::add)    ? Collective::redux_add
             : w.has(Mod::min)  ? Collective::redux_min
             : w.has(Mod::max)  ? Collective::redux_max
             : w.has(Mod::and_) ? Collective::redux_and
             : w.has(Mod::or_)  ? Collective::redux_or
                                : Collective::redux_xor;
      code.is_signed = instruction_->type() == Type::s32;
      if (is_float(instruction_->type())) {
        kind = w.has(Mod::min) ? Collective::redux_min_f32 : Collective::redux_max_f32;
        code.immediate = (w.has(Mod::abs) ? kReduxAbs : 0) | (w.has(Mod::NaN) ? kReduxNan : 0);
      }
      break;
    case Op::elect:
      kind = Collective::elect;
      break;
    default:
      return false;
  }
  code.sub = static_cast<uint8_t>(kind);
  return true;
}

bool Decoder::memory(Code& code) {
  // Without an mbarrier it is a plain store.
  if (has(Purpose::barrier)) return asynchronous_store(code);
  if (!address(code, Purpose::address)) return false;
  if (words().has(Mod::bulk)) {
    code.b = source(Purpose::size);
    ignore_operand(Purpose::immediate);  // the stored value: 0
    select_bulk_store(code);
    return true;
  }
  const bool store = has(Purpose::source);
  const ptx::MatchedOperand* data = take(store ? Purpose::source : Purpose::result);
  if (data == nullptr) return false;
  const Type type = data->spec.type;
  const unsigned bytes = ptx::byte_width(type);
  code.order = order_of(words());
  code.scope = scope_of(words());
  code.read_only = !store && words().has(Mod::nc);
  image_.has_read_only_loads |= code.read_only;
  code.element_bytes = static_cast<uint8_t>(bytes);
  code.count = instruction_->vector;
  code.is_signed = !store && ptx::kind(type) == TypeKind::signed_int;
  code.undefined = Undefined::handler;
  code.run = store ? store_handler(false) : load_handler(false);
  code.checked = store ? store_handler(true) : load_handler(true);
  auto one = [&](const Operand& each) {
    if (each.kind == OperandKind::sink) return kSinkRef;
    uint8_t width = 0;
    Ref ref;
    if (store) {
      ref = source_any(each, type, width);
    } else {
      ref = destination(each, 0);
      width = each.kind == OperandKind::reg ? static_cast<uint8_t>(register_bytes(each.id)) : uint8_t{0};
    }
    if (width < bytes) refuse(fmt::format("a register of {} bits for {} bits of memory", width * 8, bytes * 8));
    // All elements have one width; a sink takes any.
    if (code.register_bytes && code.register_bytes != width) refuse("registers of different widths in one vector");
    code.register_bytes = width;
    return ref;
  };
  if (element_count(data->operand) != code.count) return false;
  if (code.count == 1) {
    (store ? code.b : code.dst) = one(element(data->operand, 0));
  } else {
    std::vector<Ref> refs;
    for (unsigned i = 0; i < code.count; ++i) refs.push_back(one(element(data->operand, i)));
    code.list = add_refs(refs).first;
    if (store && std::ranges::find(refs, kSinkRef) != refs.end()) select_masked_store(code);
  }
  if (code.register_bytes == 0) code.register_bytes = static_cast<uint8_t>(std::max(2u, bytes));
  return true;
}

bool Decoder::atomic(Code& code) {
  if (has(Purpose::barrier)) return asynchronous_store(code);
  const Words w = words();
  const Type type = instruction_->type();
  if (!address(code, Purpose::address)) return false;
  code.count = instruction_->vector;
  if (code.count > 1) {
    const RegisterList values = register_list(Purpose::source);
    code.list = values.first;
    if (has(Purpose::result))
      register_list(Purpose::result);
    else
      add_refs(std::vector<Ref>(values.count, kSinkRef));
  } else {
    if (has(Purpose::result)) code.dst = destination(Purpose::result);
    if (has(Purpose::compare)) {
      code.b = source(Purpose::compare);
      code.c = source(Purpose::source);
    } else {
      code.b = source(Purpose::source);
    }
  }
  code.order = std::max(order_of(w), Order::relaxed);
  code.scope = scope_of(w);
  code.undefined = Undefined::handler;
  code.element_bytes = static_cast<uint8_t>(ptx::byte_width(type));
  return select_atomic(code, image_, update_operation(w.mods), type);
}

// Accesses are executed in order, so a fence matters only for the check for races.
bool Decoder::fence(Code& code) {
  const Words w = words();
  ignore_all_operands();  // all memory is ordered
  code.run = code.checked = [](Warp&, const Code&, uint32_t) {};
  code.undefined = Undefined::handler;
  if (w.has(Mod::proxy)) return true;  // orders accesses of one thread
  code.order = order_of(w) == Order::weak ? Order::acq_rel : order_of(w);
  code.scope = scope_of(w);
  code.checked = note_fence;
  return true;
}

bool Decoder::convert_stochastic(Code& code) {
  code.d = source(Purpose::random);
  std::vector<Ref> refs;
  for (const ptx::MatchedOperand* each : take_all(Purpose::source))
    for (unsigned i = 0; i < element_count(each->operand); ++i)
      refs.push_back(source(element(each->operand, i), each->spec.type));
  code.count = static_cast<uint8_t>(refs.size());
  code.list = add_refs(refs).first;
  return select_convert_stochastic(code, instruction_->types[0], words());
}

bool Decoder::convert(Code& code) {
  const Type to = instruction_->types[0], from = instruction_->types[1];
  if (words().has(Mod::pack)) {
    place(code);
    return select_convert(code, to, from, words());
  }
  const ptx::MatchedOperand* result = take(Purpose::result);
  if (result == nullptr) return false;
  code.dst = destination(result->operand, 0);
  code.register_bytes = code.element_bytes = static_cast<uint8_t>(register_bytes(result->operand.id));
  if (words().has(Mod::rs)) return convert_stochastic(code);
  const auto sources = take_all(Purpose::source);
  code.a = source_any(sources[0]->operand, from, code.source_bytes);
  if (sources.size() == 2) code.b = source(sources[1]->operand, from);
  return select_convert(code, to, from, words());
}

bool Decoder::compare(Code& code) {
  const Type type = instruction_->type();
  const Words w = words();
  for (const Mod each : w.mods) {
    if (each == Mod::and_) code.sub = 1;
    if (each == Mod::or_) code.sub = 2;
    if (each == Mod::xor_) code.sub = 3;
  }
  code.immediate = place(code).flipped ? 0xffffffff : 0;
  int flavour = 0;
  if (instruction_->op == Op::set) {
    const Type to = instruction_->types[0];
    flavour = to == Type::f32                          ? 2
              : to == Type::f16 || to == Type::f16x2   ? 3
              : to == Type::bf16 || to == Type::bf16x2 ? 4
                                                       : 1;
    code.register_bytes = code.element_bytes;
  }
  return select_compare(code, type, w, ptx::comparison_of(*function_, *instruction_), flavour);
}

bool Decoder::arithmetic(Code& code) {
  const Op op = instruction_->op;
  const Type first = instruction_->types[0], type = instruction_->type();
  const Words w = words();
  const Placed placed = place(code);
  switch (op) {
    case Op::and_:
    case Op::or_:
    case Op::xor_:
    case Op::not_:
      if (type != Type::pred) return select_logic(code, op, type, w);
      code.immediate = placed.flipped & 1 ? 0xffffffff : 0;
      code.register_bytes = placed.flipped >> 1 & 1;
      return select_predicate(code, op);
    case Op::lop3:
      code.immediate &= 0xff;
      // The form with a predicate combines by .and or .or.
      if (has(Purpose::second_result)) code.sub = w.has(Mod::or_) ? 2 : 1;
      return placed.flipped == 0 && select_logic(code, op, type, w);
    case Op::selp:
      code.immediate = placed.flipped ? 0xffffffff : 0;
      return select_logic(code, op, type, w);
    case Op::slct:
      code.sub = type == Type::f32;
      return select_logic(code, op, first, w);
    case Op::dp2a:
    case Op::dp4a:
      return select_dot(code, op, first, type, w);
    default:
      break;
  }
  if (instruction_->type_count == 2) return select_mixed(code, op, type, w);
  if (type == Type::f32x2) return select_two_singles(code, op, w);
  if (type == Type::f32 && (op == Op::min || op == Op::max) && (placed.count == 3 || w.has(Mod::abs)))
    return select_extremum(code, op, placed.count == 3, w);
  if (type == Type::f32 || type == Type::f64) return select_float(code, op, type, w);
  if (is_float(type) || type == Type::f16x2 || type == Type::bf16x2) return select_half(code, op, type, w);
  return select_integer(code, op, type, w) || select_logic(code, op, type, w);
}

}  // namespace ptxkit::emulator
