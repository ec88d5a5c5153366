// The decoder for tcgen05. PTX ISA 9.0, 9.7.16.
#include "runtime/emulator/core/state.hpp"
#include "runtime/emulator/decode/decode.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Purpose;
using ptx::Space;

}  // namespace

void Decoder::tensor_product(TensorForm& form) {
  const Words w = words();
  form.kind = w.has(Mod::kind_tf32)       ? TensorKind::tf32
              : w.has(Mod::kind_f8f6f4)   ? TensorKind::f8f6f4
              : w.has(Mod::kind_i8)       ? TensorKind::i8
              : w.has(Mod::kind_mxf8f6f4) ? TensorKind::mxf8f6f4
              : w.has(Mod::kind_mxf4)     ? TensorKind::mxf4
              : w.has(Mod::kind_mxf4nvf4) ? TensorKind::mxf4nvf4
                                          : TensorKind::f16;
  form.is_sparse = w.has(Mod::sp);
  form.is_stationary = w.has(Mod::ws);
  form.shifts_a = w.has(Mod::ashift);
  form.d = address_operand(Purpose::address);
  const ptx::MatchedOperand* a = take(Purpose::a);
  form.a_in_memory = a != nullptr && a->spec.role == ptx::Role::tensor_memory;
  if (form.a_in_memory)
    form.a = address_operand(Purpose::a);
  else
    form.a_descriptor = source(Purpose::a);
  form.b_descriptor = source(Purpose::b);
  form.instruction = source(Purpose::instruction);
  if (form.is_sparse) form.metadata = address_operand(Purpose::metadata);
  if (w.has(Mod::block_scale)) {
    form.scale_a = address_operand(Purpose::scale_a);
    form.scale_b = address_operand(Purpose::scale_b);
    form.names_factors = w.has(Mod::scale_vec_2X) || w.has(Mod::scale_vec_4X);
    form.factor_count = form.kind == TensorKind::mxf8f6f4 ? 1 : w.has(Mod::scale_vec_4X) || w.has(Mod::block16) ? 4 : 2;
  }
  form.zero_columns = has(Purpose::zero_columns) ? source(Purpose::zero_columns) : kZeroRef;
  if (has(Purpose::disabled)) form.disabled = register_list(Purpose::disabled);
  bool flipped = false;
  form.use_d = predicate(Purpose::use_d, flipped);
  form.use_d_flip = flipped ? kAllLanes : 0;
  if (has(Purpose::scale_d)) form.scale = static_cast<uint8_t>(number(Purpose::scale_d));
  // ptxas 13 accepts one operand of .kind::i8 that the ISA does not describe. Its value does not change the machine
  // code.
  ignore_operand(Purpose::predicate);
  ignore_operand(Purpose::immediate);
}

bool Decoder::tensor_memory(Code& code) {
  const Words w = words();
  TensorForm form;
  code.target = static_cast<uint32_t>(image_.tensors.size());
  code.undefined = Undefined::handler;
  form.of_pair = w.has(Mod::cta_group_2);
  const bool of_warp = w.has(Mod::sync);
  if (of_warp) {
    code.kind = Kind::collective;
    code.sub = static_cast<uint8_t>(Collective::matrix);
    code.d = constant(kAllLanes, 4);  // every lane takes part
  }
  const auto finish = [&](TensorAction action) {
    form.action = action;
    action == TensorAction::multiply ? select_tensor_multiply(code) : select_tensor(code, action);
    code.checked = code.run;
    image_.tensors.push_back(form);
    return true;
  };
  if (w.has(Mod::fence_before_thread_sync) || w.has(Mod::fence_after_thread_sync)) {
    // Instructions execute in order, so there is nothing to order.
    code.run = code.checked = [](Warp&, const Code&, uint32_t) {};
    return true;
  }
  if (w.has(Mod::wait_ld)) return finish(TensorAction::wait_load);
  if (w.has(Mod::wait_st)) return finish(TensorAction::wait_store);
  if (w.has(Mod::relinquish_alloc_permit)) return finish(TensorAction::relinquish);
  if (w.has(Mod::alloc) || w.has(Mod::dealloc)) {
    form.columns = source(Purpose::columns);
    if (w.has(Mod::dealloc)) {
      form.d = {.ref = source(Purpose::address), .space = Space::shared};
      return finish(TensorAction::release);
    }
    form.place = address_operand(Purpose::address);
    return finish(TensorAction::allocate);
  }
  if (w.has(Mod::commit)) {
    form.multicasts = has(Purpose::ctas);
    if (form.multicasts) form.ctas = source(Purpose::ctas);
    form.place = address_operand(Purpose::address);
    return finish(TensorAction::commit);
  }
  if (w.has(Mod::mma)) {
    tensor_product(form);
    return finish(TensorAction::multiply);
  }
  form.d = address_operand(Purpose::address);
  if (w.has(Mod::shift)) return finish(TensorAction::shift);
  if (w.has(Mod::cp)) {
    form.a_descriptor = source(Purpose::source);
    form.copy_columns = w.has(Mod::_128x256b) || w.has(Mod::_4x256b) ? 8 : 4;
    form.rows_per_warp = w.has(Mod::_4x256b) ? 1 : 32;
    const ptx::Type packed = instruction_->type();
    form.packed_bits = packed == ptx::Type::b4x16_p64 ? 4 : packed == ptx::Type::b6x16_p32 ? 6 : 0;
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
  if (has(Purpose::split)) form.split = number(Purpose::split);
  if (w.has(Mod::red)) {
    using ptx::Type;
    const Type type = instruction_->type();
    form.reduction = type == Type::f32   ? TensorReduction::of_float
                     : type == Type::s32 ? TensorReduction::of_signed
                                         : TensorReduction::of_unsigned;
    form.to_largest = w.has(Mod::max);
    form.of_magnitudes = w.has(Mod::abs);
    form.keeps_nan = w.has(Mod::NaN);
    code.dst = destination(Purpose::reduction);
  }
  form.data = register_list(store ? Purpose::source : Purpose::result);
  return finish(store ? TensorAction::store : TensorAction::load);
}

}  // namespace ptxkit::emulator
