// The decoder's family of matrix instructions. PTX ISA 9.0, 9.7.14.
#include "analyzer/flow/effects.hpp"
#include "runtime/backend/emulator/decode.hpp"
#include "runtime/backend/emulator/float_math.hpp"
#include "runtime/backend/emulator/state.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Type;

}  // namespace

// {a, b, c, d}, or one register.
RegisterList Decoder::register_list(const Operand& operand, Type type, bool writes) {
  std::vector<Ref> refs;
  const unsigned bytes = ptx::byte_width(type);
  auto add = [&](const Operand& each) { refs.push_back(writes ? destination(each, bytes) : source(each, type)); };
  if (operand.kind == OperandKind::vector)
    for (const Operand& each : function_->children(operand)) add(each);
  else
    add(operand);
  RegisterList list{static_cast<uint32_t>(image_.refs.size()), static_cast<uint32_t>(refs.size())};
  image_.refs.insert(image_.refs.end(), refs.begin(), refs.end());
  return list;
}

// The registers that products of this function use, as accumulators or for A.
void Decoder::find_watched() {
  watched_.clear();
  for (const ptx::Instruction& instruction : function_->instructions) {
    if (instruction.op != Op::wgmma || !function_->has(instruction, Mod::mma_async)) continue;
    const auto operands = function_->operands(instruction);
    for (const Operand& list : operands.first(std::min<size_t>(operands.size(), 2)))
      for (const Operand& each : function_->children(list))
        if (each.kind == OperandKind::reg) watched_.insert(each.id);
  }
}

// Before an instruction that names such a register: a look whether a product still uses it. A move needs no fence:
// compilers put the accumulators' first values behind it (nvcc 13, CuTe DSL), and ptxas knows what they mean.
void Decoder::watch() {
  if (watched_.empty() || instruction_->op == Op::wgmma) return;
  Code code;
  code.list = static_cast<uint32_t>(image_.watched.size());
  flow::for_each_register(*function_, *instruction_, [&](uint32_t, const Operand& operand, bool written) {
    if (watched_.contains(operand.id))
      image_.watched.push_back({slot(operand.id, 0), written && instruction_->op != Op::mov});
  });
  code.target = static_cast<uint32_t>(image_.watched.size()) - code.list;
  if (code.target == 0) return;
  code.counts = false;
  code.undefined = Undefined::handler;
  code.run = [](Warp&, const Code&, uint32_t) {};
  code.checked = [](Warp& warp, const Code& each, uint32_t) {
    if (checks(*warp.cta, kCheckRaces))
      watch_registers(warp, warp.cta->launch->image->watched.data() + each.list, each.target);
  };
  code.guard = instruction_->guard ? slot(instruction_->guard.reg, 0) : kNoRef;
  code.guard_flip = instruction_->guard.negated ? 0xffffffff : 0;
  code.meeting = next_meets_;
  next_meets_ = false;
  emit(code);
}

bool Decoder::matrix(Code& code, Operands operands) {
  const Words w = words();
  const Op op = instruction_->op;
  if (op == Op::tcgen05) return tensor_memory(code, operands);
  MatrixForm form;
  form.shape = ptx::shape(*instruction_);
  form.saturates = w.has(Mod::satfinite);
  form.transposes = w.has(Mod::trans);
  form.by_and = w.has(Mod::and_);
  form.is_wmma = op == Op::wmma;
  code.kind = Kind::collective;
  code.sub = static_cast<uint8_t>(Collective::matrix);
  code.d = constant(kFull, 4);  // every lane takes part
  code.undefined = Undefined::handler;
  code.target = static_cast<uint32_t>(image_.matrices.size());
  // The words .row and .col, in the order written.
  std::vector<bool> columns;
  for (Mod each : w.mods)
    if (each == Mod::row || each == Mod::col) columns.push_back(each == Mod::col);
  if (columns.size() > 0) form.a_columns = columns[0];
  if (columns.size() > 1) form.b_columns = columns[1];
  auto finish = [&] {
    image_.matrices.push_back(form);
    return true;
  };
  if (op == Op::ldmatrix || op == Op::stmatrix) {
    const bool store = op == Op::stmatrix;
    if (operands.size() != 2 || !address(code, operands[store ? 0 : 1], instruction_->space)) return false;
    form.d = register_list(operands[store ? 1 : 0], Type::b32, !store);
    const Type packed = instruction_->type();
    if (packed == Type::b16) {
      select_matrix_rows(code, store);
    } else {
      form.packed_bits = packed == Type::b6x16_p32 ? 6 : packed == Type::b4x16_p64 ? 4 : 8;
      select_byte_rows(code, store);
    }
    return finish();
  }
  if (op == Op::movmatrix) {
    if (operands.size() != 2) return false;
    form.d = register_list(operands[0], Type::b32, true);
    form.a = register_list(operands[1], Type::b32, false);
    select_transpose(code);
    return finish();
  }
  if (form.is_wmma && !w.has(Mod::mma)) {
    const bool store = w.has(Mod::store);
    form.d_type = instruction_->type();
    form.matrix = w.has(Mod::a) ? 'a' : w.has(Mod::b) ? 'b' : 'c';
    if (operands.size() < 2 || !address(code, operands[store ? 0 : 1], instruction_->space)) return false;
    form.d = register_list(operands[store ? 1 : 0], form.d_type == Type::f64 ? Type::b64 : Type::b32, !store);
    form.has_stride = operands.size() > 2;
    if (form.has_stride) form.stride = source(operands[2], Type::u32);
    select_matrix_elements(code, store);
    return finish();
  }
  if (op == Op::wgmma) return warpgroup(code, form, operands) && finish();
  form.is_sparse = w.has(Mod::sp) || w.has(Mod::sp_ordered_metadata);
  const bool scaled = w.has(Mod::block_scale);
  form.in_bytes = w.has(Mod::kind_f8f6f4) || w.has(Mod::kind_mxf8f6f4);
  if (operands.size() != 4u + (scaled ? 4u : 0u) + (form.is_sparse ? 2u : 0u)) return false;
  // wmma of halves names the types of D and C only.
  const auto& types = instruction_->types;
  if (instruction_->type_count == (scaled ? 5 : 4)) {
    form.d_type = types[0];
    form.a_type = types[1];
    form.b_type = types[2];
    form.c_type = types[3];
  } else if (instruction_->type_count == 2 && form.is_wmma) {
    form.d_type = types[0];
    form.c_type = types[1];
    form.a_type = form.b_type = Type::f16;
  } else {
    return false;
  }
  form.rounding = static_cast<uint8_t>(rounding_of(w));
  auto registers_of = [](Type type) { return type == Type::f64 ? Type::b64 : Type::b32; };
  form.d = register_list(operands[0], registers_of(form.d_type), true);
  form.a = register_list(operands[1], registers_of(form.a_type), false);
  form.b = register_list(operands[2], registers_of(form.b_type), false);
  form.c = register_list(operands[3], registers_of(form.c_type), false);
  if (form.is_sparse && !sparse(form, operands[4], operands[5])) return false;
  if (scaled && !scales(form, operands.last(4))) return false;
  select_multiply(code);
  return finish();
}

// The factors of A and B, each behind it the byte and the lanes that hold them.
bool Decoder::scales(MatrixForm& form, Operands operands) {
  const Words w = words();
  form.scales_are_ue4m3 = instruction_->types[4] == Type::ue4m3;
  form.scale_count = w.has(Mod::kind_mxf8f6f4) ? 1 : w.has(Mod::scale_vec_4X) ? 4 : 2;
  const Ref factors[] = {source(operands[0], Type::b32), source(operands[2], Type::b32)};
  for (unsigned of_b = 0; of_b < 2; ++of_b) {
    const auto place = function_->children(operands[2 * of_b + 1]);
    if (place.size() != 2) return false;
    for (unsigned i = 0; i < 2; ++i) form.scale_place[of_b][i] = source(place[i], Type::u16);
  }
  form.scales = {static_cast<uint32_t>(image_.refs.size()), 2};
  image_.refs.insert(image_.refs.end(), std::begin(factors), std::end(factors));
  return true;
}

bool Decoder::sparse(MatrixForm& form, const Operand& metadata, const Operand& selector) {
  if (selector.kind != OperandKind::integer) return false;
  form.is_sparse = true;
  form.metadata = register_list(metadata, Type::b32, false);
  form.selector = static_cast<uint8_t>(selector.value);
  return true;
}

// wgmma: D, A (registers or descriptor), descriptor of B, [metadata, selector,] scale-d, [scale-a, scale-b [,
// transpose-a], transpose-b]. Each warp of the group computes its 16 rows when it comes by; what fence,
// commit_group and wait_group order is in order already, and watched (warpgroup_order.hpp).
bool Decoder::warpgroup(Code& code, MatrixForm& form, Operands operands) {
  const Words w = words();
  if (!w.has(Mod::mma_async)) {
    code.kind = Kind::simple;
    code.run = [](Warp&, const Code&, uint32_t) {};
    if (w.has(Mod::fence)) {
      code.checked = [](Warp& warp, const Code&, uint32_t) { warp.warpgroup.fence(); };
    } else if (w.has(Mod::commit_group)) {
      code.checked = [](Warp& warp, const Code&, uint32_t) { warp.warpgroup.commit(); };
    } else {
      if (operands.size() != 1 || operands[0].kind != OperandKind::integer) return false;
      code.immediate = operands[0].value;
      code.checked = [](Warp& warp, const Code& each, uint32_t) { warp.warpgroup.wait(each.immediate); };
    }
    return true;
  }
  if (instruction_->type_count != 3 || operands.size() < 4) return false;
  const auto& types = instruction_->types;
  form.d_type = form.c_type = types[0];
  form.a_type = types[1];
  form.b_type = types[2];
  form.by_and = true;
  form.a_in_shared = operands[1].kind != OperandKind::vector;
  form.d = register_list(operands[0], Type::b32, true);
  form.c = register_list(operands[0], Type::b32, false);
  form.a = register_list(operands[1], form.a_in_shared ? Type::b64 : Type::b32, false);
  form.b = register_list(operands[2], Type::b64, false);
  size_t next = 3;
  if (w.has(Mod::sp)) {
    if (operands.size() < 6 || !sparse(form, operands[3], operands[4])) return false;
    next = 5;
  }
  bool flipped = false;
  form.keeps_d = predicate(operands[next++], flipped);
  form.keeps_d_flip = flipped ? kFull : 0;
  auto flag = [&](uint64_t when) { return next < operands.size() && operands[next++].value == when; };
  form.a_negated = flag(~uint64_t{0});
  form.b_negated = flag(~uint64_t{0});
  // "Columns": the leading dimension in memory is M or N.
  if (form.a_in_shared) form.a_columns = flag(1);
  form.b_columns = flag(1);
  select_warpgroup_multiply(code);
  return true;
}

}  // namespace ptxkit::emulator
