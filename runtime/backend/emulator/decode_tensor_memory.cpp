// The decoder's family of tcgen05. PTX ISA 9.0, 9.7.16.
#include "runtime/backend/emulator/decode.hpp"
#include "runtime/backend/emulator/state.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

}  // namespace

// mma: D, A (an address or a descriptor), B, instruction, [lanes that are not written,] whether D counts [, its scale].
bool Decoder::tensor_product(TensorForm& form, Operands operands) {
  const Words w = words();
  form.kind = w.has(Mod::kind_tf32)     ? TensorKind::tf32
              : w.has(Mod::kind_f8f6f4) ? TensorKind::f8f6f4
              : w.has(Mod::kind_i8)     ? TensorKind::i8
                                        : TensorKind::f16;
  if (operands.size() < 5 || !address_operand(form.d, operands[0], Space::shared)) return false;
  form.a_in_memory = operands[1].kind == OperandKind::address;
  if (form.a_in_memory) {
    if (!address_operand(form.a, operands[1], Space::shared)) return false;
  } else {
    form.a_descriptor = source(operands[1], Type::b64);
  }
  form.b_descriptor = source(operands[2], Type::b64);
  form.instruction = source(operands[3], Type::b32);
  size_t next = 4;
  if (operands[next].kind == OperandKind::vector) form.disabled = register_list(operands[next++], Type::b32, false);
  if (next >= operands.size()) return false;
  bool flipped = false;
  form.keeps_d = predicate(operands[next++], flipped);
  form.keeps_d_flip = flipped ? kFull : 0;
  if (next < operands.size()) form.scale = static_cast<uint8_t>(operands[next].value);
  return true;
}

bool Decoder::tensor_memory(Code& code, Operands operands) {
  const Words w = words();
  TensorForm form;
  code.target = static_cast<uint32_t>(image_.tensors.size());
  code.undefined = Undefined::handler;
  const bool of_warp = w.has(Mod::sync);
  if (of_warp) {
    code.kind = Kind::collective;
    code.sub = static_cast<uint8_t>(Collective::matrix);
    code.d = constant(kFull, 4);  // every lane takes part
  }
  const auto finish = [&](TensorAction action) {
    form.action = action;
    action == TensorAction::multiply ? select_tensor_multiply(code) : select_tensor(code, action);
    code.checked = code.run;
    image_.tensors.push_back(form);
    return true;
  };
  if (w.has(Mod::fence_before_thread_sync) || w.has(Mod::fence_after_thread_sync) || w.has(Mod::wait_ld)) {
    // Everything happens in order here; loads have their values at once.
    code.run = code.checked = [](Warp&, const Code&, uint32_t) {};
    return true;
  }
  if (w.has(Mod::wait_st)) return finish(TensorAction::wait_store);
  if (w.has(Mod::relinquish_alloc_permit)) return finish(TensorAction::relinquish);
  if (operands.empty()) return false;
  if (w.has(Mod::alloc) || w.has(Mod::dealloc)) {
    if (operands.size() != 2) return false;
    form.columns = source(operands[1], Type::u32);
    if (w.has(Mod::dealloc)) {
      form.d = {.ref = source(operands[0], Type::u32), .space = Space::shared};
      return finish(TensorAction::release);
    }
    return address_operand(form.place, operands[0], instruction_->space) && finish(TensorAction::allocate);
  }
  if (w.has(Mod::commit)) {
    form.multicasts = w.has(Mod::multicast_cluster);
    if (operands.size() != (form.multicasts ? 2u : 1u)) return false;
    if (form.multicasts) form.ctas = source(operands[1], Type::b16);
    return address_operand(form.place, operands[0], instruction_->space) && finish(TensorAction::commit);
  }
  if (w.has(Mod::mma)) return tensor_product(form, operands) && finish(TensorAction::multiply);
  if (w.has(Mod::cp)) {
    if (operands.size() != 2 || !address_operand(form.d, operands[0], Space::shared)) return false;
    form.a_descriptor = source(operands[1], Type::b64);
    form.copy_columns = w.has(Mod::_128x256b) ? 8 : 4;
    form.copy_rows = w.has(Mod::_64x128b) ? 64 : w.has(Mod::_32x128b) ? 32 : 128;
    form.rows_of_warp = w.has(Mod::warpx4)         ? std::array<uint8_t, 4>{0, 0, 0, 0}
                        : w.has(Mod::warpx2_02_13) ? std::array<uint8_t, 4>{0, 1, 0, 1}
                        : w.has(Mod::warpx2_01_23) ? std::array<uint8_t, 4>{0, 0, 1, 1}
                                                   : std::array<uint8_t, 4>{0, 1, 2, 3};
    return finish(TensorAction::copy);
  }
  const bool store = w.has(Mod::st);
  if (!store && !w.has(Mod::ld)) return false;
  form.shape = w.has(Mod::_16x64b)     ? TensorShape::rows_16_by_64
               : w.has(Mod::_16x128b)  ? TensorShape::rows_16_by_128
               : w.has(Mod::_16x256b)  ? TensorShape::rows_16_by_256
               : w.has(Mod::_16x32bx2) ? TensorShape::halves
                                       : TensorShape::rows_32;
  form.packs = w.has(Mod::pack_16b) || w.has(Mod::unpack_16b);
  const bool halves = form.shape == TensorShape::halves;
  if (operands.size() != (halves ? 3u : 2u)) return false;
  const Operand& list = operands[store ? operands.size() - 1 : 0];
  if (!address_operand(form.d, operands[store ? 0 : 1], Space::shared)) return false;
  if (halves) form.split = operands[store ? 1 : 2].value;
  form.data = register_list(list, Type::b32, !store);
  return finish(store ? TensorAction::store : TensorAction::load);
}

}  // namespace ptxkit::emulator
