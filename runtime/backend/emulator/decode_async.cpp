// The decoder's families of asynchronous copies, mbarriers and clusters. PTX ISA 9.0, 9.7.9.25 and 9.7.13.
#include "runtime/backend/emulator/decode.hpp"
#include "runtime/backend/emulator/state.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

bool is_shared(Space space) { return space == Space::shared || space == Space::shared_cluster; }

// mapa: the same place in the CTA of that rank.
template <class T>
void map_address(Warp& warp, const Code& code, uint32_t mask) {
  const T* a = at<const T>(warp, code.a);
  const uint32_t* rank = at<const uint32_t>(warp, code.b);
  for_lanes(mask, [&](unsigned lane) {
    const uint64_t window = static_cast<uint64_t>(a[lane]) & ~kWindowMask;
    at<T>(warp, code.dst)[lane] =
        static_cast<T>(window | uint64_t{rank[lane] + 1} << kRankShift | (a[lane] & kRankOffsetMask));
  });
}

template <class T>
void rank_of_address(Warp& warp, const Code& code, uint32_t mask) {
  const T* a = at<const T>(warp, code.a);
  for_lanes(mask, [&](unsigned lane) {
    const auto rank = static_cast<uint32_t>((static_cast<uint64_t>(a[lane]) & kWindowMask) >> kRankShift);
    at<uint32_t>(warp, code.dst)[lane] = rank ? rank - 1 : warp.cta->rank;
  });
}

}  // namespace

bool Decoder::address_operand(AddressOperand& out, const Operand& operand, Space space) {
  Code code;
  if (!address(code, operand, space)) return false;
  out = {code.a, code.immediate, code.wide_address, code.narrow, code.space};
  return true;
}

bool Decoder::asynchronous_copy(Code& code, Operands operands) {
  const Words w = words();
  if (instruction_->op == Op::tensormap) return tensor_map(code, operands);
  AsyncForm form;
  code.target = static_cast<uint32_t>(image_.asyncs.size());
  select_async(code);
  const Space to = instruction_->space, from = instruction_->second_space;
  bool known = false;
  if (w.has(Mod::prefetch)) {
    form.action = AsyncAction::commit;  // a hint: nothing moves
    code.run = [](Warp&, const Code&, uint32_t) {};
    known = true;
  } else if (w.has(Mod::commit_group)) {
    form.action = AsyncAction::commit;
    form.is_bulk = w.has(Mod::bulk);
    known = true;
  } else if (w.has(Mod::wait_group) || w.has(Mod::wait_all)) {
    form.action = AsyncAction::wait;
    form.is_bulk = w.has(Mod::bulk);
    form.reads_only = w.has(Mod::read);
    form.groups = UINT32_MAX;
    if (w.has(Mod::wait_group)) {
      if (operands.size() != 1 || operands[0].kind != OperandKind::integer) return false;
      form.groups = static_cast<uint32_t>(operands[0].value);
    }
    known = true;
  } else if (w.has(Mod::mbarrier)) {
    form.action = AsyncAction::track;
    form.increments = !w.has(Mod::noinc);
    known = operands.size() == 1 && address_operand(form.barrier, operands[0], to);
  } else if (w.has(Mod::tensor)) {
    // To shared memory: tile, map and coordinates, mbarrier. To global memory: map and coordinates, tile.
    form.action = AsyncAction::tensor;
    form.has_barrier = w.has(Mod::mbarrier_complete_tx_bytes);
    form.multicasts = w.has(Mod::multicast_cluster);
    if (operands.size() < (form.has_barrier ? 3u : 2u)) return false;
    const Operand& map = operands[form.has_barrier ? 1 : 0];
    const auto more = function_->children(map);
    known =
        more.size() == 1 && address_operand(form.map, map, Space::generic) &&
        (form.has_barrier ? address_operand(form.to, operands[0], to) && address_operand(form.barrier, operands[2], to)
                          : address_operand(form.from, operands[1], from));
    if (!known) return false;
    form.coordinates = register_list(more[0], Type::s32, false);
    form.mode = w.has(Mod::tile_gather4) || w.has(Mod::tile_scatter4) ? TensorMode::rows
                : w.has(Mod::im2col) || w.has(Mod::im2col_no_offs)    ? TensorMode::im2col
                : w.has(Mod::im2col_w)                                ? TensorMode::im2col_w
                : w.has(Mod::im2col_w_128)                            ? TensorMode::im2col_w_128
                                                                      : TensorMode::tiled;
    if (form.mode == TensorMode::rows && form.coordinates.count != 5) return false;
    size_t next = 3;
    if (form.mode >= TensorMode::im2col && !w.has(Mod::im2col_no_offs)) {
      if (operands.size() < 4) return false;
      form.offsets = register_list(operands[next++], Type::u16, false);
    }
    if (form.multicasts && operands.size() <= next) return false;
    if (form.multicasts) form.ctas = source(operands[next], Type::b16);
    if (w.has(Mod::reduce)) form.operation = update_operation(w.mods);
  } else if (w.has(Mod::bulk)) {
    form.action = AsyncAction::bulk;
    form.has_barrier = w.has(Mod::mbarrier_complete_tx_bytes);
    form.multicasts = w.has(Mod::multicast_cluster);
    if (operands.size() < (form.has_barrier ? 4u : 3u)) return false;
    known = address_operand(form.to, operands[0], to) && address_operand(form.from, operands[1], from);
    form.size = source(operands[2], Type::u32);
    if (form.has_barrier) known = known && address_operand(form.barrier, operands[3], to);
    if (form.multicasts) form.ctas = source(operands[4], Type::b16);
    form.has_byte_mask = w.has(Mod::cp_mask);
    if (form.has_byte_mask) form.byte_mask = source(operands.back(), Type::b16);
    if (w.has(Mod::reduce)) {
      form.update = find_update(update_operation(w.mods), instruction_->type(), to == Space::global);
      known = known && form.update.apply;
    }
  } else {
    if (operands.size() < 3 || operands[2].kind != OperandKind::integer) return false;
    known = address_operand(form.to, operands[0], to) && address_operand(form.from, operands[1], from);
    form.bytes = static_cast<uint32_t>(operands[2].value);
    const bool has_policy = w.has(Mod::L2_cache_hint);
    if (operands.size() > (has_policy ? 4u : 3u)) {
      const Operand& fourth = operands[3];
      const bool is_predicate = fourth.kind == OperandKind::reg && function_->registers[fourth.id].type == Type::pred;
      if (is_predicate) {
        bool flipped = false;
        form.has_ignore = true;
        form.source_size = predicate(fourth, flipped);
        form.ignore_flip = flipped ? 0xffffffff : 0;
      } else {
        form.has_source_size = true;
        form.source_size = source(fourth, Type::u32);
      }
    }
  }
  image_.asyncs.push_back(form);
  return known;
}

// tensormap.replace: map, [dimension,] value. tensormap.cp_fenceproxy: map in global memory, one in shared memory, 128.
bool Decoder::tensor_map(Code& code, Operands operands) {
  const Words w = words();
  AsyncForm form;
  code.target = static_cast<uint32_t>(image_.asyncs.size());
  select_async(code);
  if (operands.size() < 2) return false;
  if (w.has(Mod::cp_fenceproxy)) {
    // All lanes of the warp do it together.
    form.action = AsyncAction::publish_map;
    code.kind = Kind::collective;
    code.sub = static_cast<uint8_t>(Collective::matrix);
    code.d = constant(kFull, 4);
    code.checked = code.run;
    code.order = Order::release;
    code.scope = w.has(Mod::cta) ? Scope::cta : w.has(Mod::cluster) ? Scope::cluster : Scope::gpu;
    if (!address_operand(form.to, operands[0], Space::global) ||
        !address_operand(form.from, operands[1], Space::shared))
      return false;
    image_.asyncs.push_back(form);
    return true;
  }
  struct Row {
    Mod mod;
    TensorField field;
  };
  static constexpr Row kRows[] = {{Mod::global_address, TensorField::global_address},
                                  {Mod::rank, TensorField::rank},
                                  {Mod::box_dim, TensorField::box_dim},
                                  {Mod::global_dim, TensorField::global_dim},
                                  {Mod::global_stride, TensorField::global_stride},
                                  {Mod::element_stride, TensorField::element_stride},
                                  {Mod::elemtype, TensorField::elemtype},
                                  {Mod::interleave_layout, TensorField::interleave_layout},
                                  {Mod::swizzle_mode, TensorField::swizzle_mode},
                                  {Mod::swizzle_atomicity, TensorField::swizzle_atomicity},
                                  {Mod::fill_mode, TensorField::fill_mode}};
  const Row* found = nullptr;
  for (const Row& row : kRows)
    if (w.has(row.mod)) found = &row;
  if (!found) return false;
  form.action = AsyncAction::replace_field;
  form.field = found->field;
  form.wide_field = instruction_->type() == Type::b64;
  if (!address_operand(form.map, operands[0], instruction_->space)) return false;
  if (operands.size() == 3) form.ordinal = static_cast<uint32_t>(operands[1].value);
  form.size = source(operands.back(), instruction_->type());
  image_.asyncs.push_back(form);
  return true;
}

// clusterlaunchcontrol: answer, mbarrier; or what the answer of 16 bytes in a register says.
bool Decoder::launch_control(Code& code, Operands operands) {
  const Words w = words();
  if (operands.size() != 2) return false;
  if (w.has(Mod::try_cancel)) {
    AsyncForm form;
    form.action = AsyncAction::cancel;
    form.has_barrier = true;
    form.multicasts = w.has(Mod::multicast_cluster_all);
    if (!address_operand(form.to, operands[0], instruction_->space) ||
        !address_operand(form.barrier, operands[1], instruction_->space))
      return false;
    code.target = static_cast<uint32_t>(image_.asyncs.size());
    select_async(code);
    image_.asyncs.push_back(form);
    return true;
  }
  code.a = source(operands[1], Type::b128);
  const bool asks = w.has(Mod::is_canceled);
  select_query_cancel(code, asks);
  if (asks) {
    code.dst = destination_predicate(operands[0]);
    return true;
  }
  const RegisterList list = register_list(operands[0], Type::b32, true);
  code.list = list.first;
  code.count = static_cast<uint8_t>(list.count);
  code.immediate = w.has(Mod::get_first_ctaid_y) ? 1 : w.has(Mod::get_first_ctaid_z) ? 2 : 0;
  return true;
}

// st.async, red.async: address, value, mbarrier.
bool Decoder::asynchronous_store(Code& code, Operands operands) {
  const Words w = words();
  if (operands.size() != 3 || !w.has(Mod::mbarrier_complete_tx_bytes)) return false;
  AsyncForm form;
  form.action = instruction_->op == Op::st ? AsyncAction::store : AsyncAction::reduce;
  const Type type = instruction_->type();
  if (!address_operand(form.to, operands[0], instruction_->space) ||
      !address_operand(form.barrier, operands[2], instruction_->space))
    return false;
  if (form.action == AsyncAction::reduce) {
    form.update = find_update(update_operation(w.mods), type, false);
    if (!form.update.apply) return false;
  }
  const RegisterList list = register_list(operands[1], type, false);
  code.list = list.first;
  code.count = static_cast<uint8_t>(list.count);
  code.element_bytes = static_cast<uint8_t>(ptx::byte_width(type));
  code.target = static_cast<uint32_t>(image_.asyncs.size());
  select_async(code);
  image_.asyncs.push_back(form);
  return true;
}

bool Decoder::mbarrier(Code& code, Operands operands) {
  const Words w = words();
  MbarrierForm form;
  struct Row {
    Mod mod;
    MbarrierAction action;
  };
  static constexpr Row kRows[] = {
      {Mod::init, MbarrierAction::init},
      {Mod::inval, MbarrierAction::invalidate},
      {Mod::arrive, MbarrierAction::arrive},
      {Mod::arrive_drop, MbarrierAction::drop},
      {Mod::test_wait, MbarrierAction::test_wait},
      {Mod::try_wait, MbarrierAction::try_wait},
      {Mod::pending_count, MbarrierAction::pending_count},
      {Mod::complete_tx, MbarrierAction::complete},
  };
  bool found = false;
  for (const Row& row : kRows)
    if (w.has(row.mod)) {
      form.action = row.action;
      found = true;
    }
  if (!found) {
    if (!w.has(Mod::expect_tx)) return false;
    form.action = MbarrierAction::expect;
  }
  form.expects = w.has(Mod::expect_tx);
  form.no_complete = w.has(Mod::noComplete);
  form.by_parity = w.has(Mod::parity);
  code.target = static_cast<uint32_t>(image_.mbarriers.size());
  code.undefined = Undefined::none;
  if (operands.empty()) return false;
  size_t next = 0;
  const bool waits = form.action == MbarrierAction::test_wait || form.action == MbarrierAction::try_wait;
  if (form.action == MbarrierAction::pending_count) {
    code.dst = destination(operands[0], 4);
    code.a = source(operands[1], Type::b64);
    code.element_bytes = 4;
  } else {
    if (waits) code.dst = destination_predicate(operands[next++]);
    if (form.action == MbarrierAction::arrive || form.action == MbarrierAction::drop)
      code.dst = destination(operands[next++], 8);
    if (next >= operands.size() || !address(code, operands[next++], instruction_->space)) return false;
    if (next < operands.size()) {
      form.has_count = true;
      code.b = source(operands[next], waits && !form.by_parity ? Type::b64 : Type::u32);
    }
  }
  select_mbarrier(code, form.action);
  if (form.action == MbarrierAction::try_wait) code.kind = Kind::mbarrier_wait;
  image_.mbarriers.push_back(form);
  return true;
}

// mapa, getctarank.
bool Decoder::cluster_address(Code& code, Operands operands) {
  if (instruction_->op == Op::clusterlaunchcontrol) return launch_control(code, operands);
  const Type type = instruction_->type();
  const bool wide = type == Type::u64;
  if (operands.size() < 2 || (instruction_->space != Space::generic && !is_shared(instruction_->space))) return false;
  code.a = source(operands[1], type);
  if (instruction_->op == Op::getctarank) {
    code.dst = destination(operands[0], 4);
    code.element_bytes = 4;
    code.run = wide ? rank_of_address<uint64_t> : rank_of_address<uint32_t>;
    return true;
  }
  if (operands.size() != 3) return false;
  code.dst = destination(operands[0], ptx::byte_width(type));
  code.element_bytes = static_cast<uint8_t>(ptx::byte_width(type));
  code.b = source(operands[2], Type::u32);
  code.run = wide ? map_address<uint64_t> : map_address<uint32_t>;
  return true;
}

}  // namespace ptxkit::emulator
