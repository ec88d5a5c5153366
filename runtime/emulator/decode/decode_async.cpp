// The decoder for asynchronous copies, mbarriers and clusters. PTX ISA 9.0, 9.7.9.25 and 9.7.13.
#include "runtime/emulator/core/state.hpp"
#include "runtime/emulator/decode/decode.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Op;
using ptx::Purpose;
using ptx::Space;
using ptx::Type;

bool is_shared(Space space) { return space == Space::shared || space == Space::shared_cluster; }

// mapa: the same offset in the CTA of the given rank.
template <class T>
void map_address(Warp& warp, const Code& code, uint32_t mask) {
  const T* a = at<const T>(warp, code.a);
  const uint32_t* rank = at<const uint32_t>(warp, code.b);
  for_lanes(mask,
            [&](unsigned lane) { at<T>(warp, code.dst)[lane] = static_cast<T>(address_in(a[lane], rank[lane])); });
}

template <class T>
void rank_of_address(Warp& warp, const Code& code, uint32_t mask) {
  const T* a = at<const T>(warp, code.a);
  for_lanes(mask, [&](unsigned lane) {
    at<uint32_t>(warp, code.dst)[lane] =
        static_cast<uint32_t>((static_cast<uint64_t>(a[lane]) & kWindowMask) >> kRankShift);
  });
}

}  // namespace

bool Decoder::asynchronous_copy(Code& code) {
  const Words w = words();
  if (instruction_->op == Op::tensormap) return tensor_map(code);
  AsyncForm form;
  code.target = static_cast<uint32_t>(image_.asyncs.size());
  select_async(code);
  if (has(Purpose::barrier)) form.barrier = address_operand(Purpose::barrier);
  form.has_barrier = w.has(Mod::mbarrier_complete_tx_bytes);
  form.multicasts = has(Purpose::ctas);
  if (form.multicasts) form.ctas = source(Purpose::ctas);
  bool known = true;
  if (w.has(Mod::prefetch)) {
    form.action = AsyncAction::commit;  // a hint: no data moves
    code.run = [](Warp&, const Code&, uint32_t) {};
    ignore_all_operands();
  } else if (w.has(Mod::commit_group)) {
    form.action = AsyncAction::commit;
    form.is_bulk = w.has(Mod::bulk);
  } else if (w.has(Mod::wait_group) || w.has(Mod::wait_all)) {
    form.action = AsyncAction::wait;
    form.is_bulk = w.has(Mod::bulk);
    form.reads_only = w.has(Mod::read);
    form.groups = w.has(Mod::wait_group) ? static_cast<uint32_t>(number(Purpose::immediate)) : UINT32_MAX;
  } else if (w.has(Mod::mbarrier)) {
    form.action = AsyncAction::track;
    form.increments = !w.has(Mod::noinc);
  } else if (w.has(Mod::tensor)) {
    form.action = AsyncAction::tensor;
    form.map = generic_address_operand(Purpose::map);
    form.coordinates = register_list(Purpose::coordinates);
    (form.has_barrier ? form.to : form.from) = address_operand(form.has_barrier ? Purpose::to : Purpose::from);
    form.mode = w.has(Mod::tile_gather4) || w.has(Mod::tile_scatter4) ? TensorMode::rows
                : w.has(Mod::im2col) || w.has(Mod::im2col_no_offs)    ? TensorMode::im2col
                : w.has(Mod::im2col_w)                                ? TensorMode::im2col_w
                : w.has(Mod::im2col_w_128)                            ? TensorMode::im2col_w_128
                                                                      : TensorMode::tiled;
    if (has(Purpose::offsets)) form.offsets = register_list(Purpose::offsets);
    if (w.has(Mod::reduce)) form.operation = update_operation(w.mods);
  } else if (w.has(Mod::bulk)) {
    form.action = AsyncAction::bulk;
    form.to = address_operand(Purpose::to);
    form.from = address_operand(Purpose::from);
    form.size = source(Purpose::size);
    form.has_byte_mask = has(Purpose::byte_mask);
    if (form.has_byte_mask) form.byte_mask = source(Purpose::byte_mask);
    if (w.has(Mod::reduce)) {
      form.update = find_update(update_operation(w.mods), instruction_->type(),
                                instruction_->space == Space::global ? Adder::of_memory : Adder::of_threads);
      known = form.update.apply != nullptr;
    }
  } else {
    form.to = address_operand(Purpose::to);
    form.from = address_operand(Purpose::from);
    form.bytes = static_cast<uint32_t>(number(Purpose::size));
    form.has_ignore = has(Purpose::ignore);
    form.has_source_size = has(Purpose::source_size);
    if (form.has_ignore) {
      bool flipped = false;
      form.source_size = predicate(Purpose::ignore, flipped);
      form.ignore_flip = flipped ? 0xffffffff : 0;
    }
    if (form.has_source_size) form.source_size = source(Purpose::source_size);
  }
  image_.asyncs.push_back(form);
  return known;
}

bool Decoder::tensor_map(Code& code) {
  const Words w = words();
  AsyncForm form;
  code.target = static_cast<uint32_t>(image_.asyncs.size());
  select_async(code);
  if (w.has(Mod::cp_fenceproxy)) {
    // All lanes of the warp execute it together.
    form.action = AsyncAction::publish_map;
    code.kind = Kind::collective;
    code.sub = static_cast<uint8_t>(Collective::matrix);
    code.d = constant(kAllLanes, 4);
    code.checked = code.run;
    code.order = Order::release;
    code.scope = w.has(Mod::cta) ? Scope::cta : w.has(Mod::cluster) ? Scope::cluster : Scope::gpu;
    form.to = address_operand(Purpose::to);
    form.from = address_operand(Purpose::from);
    ignore_operand(Purpose::immediate);  // the size of a map
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
  form.map = address_operand(Purpose::map);
  if (has(Purpose::ordinal)) form.ordinal = static_cast<uint32_t>(number(Purpose::ordinal));
  form.size = source(Purpose::source);
  image_.asyncs.push_back(form);
  return true;
}

// clusterlaunchcontrol: a request, or a query of its 16-byte answer in a register.
bool Decoder::launch_control(Code& code) {
  const Words w = words();
  if (w.has(Mod::try_cancel)) {
    AsyncForm form;
    form.action = AsyncAction::cancel;
    form.has_barrier = true;
    form.multicasts = w.has(Mod::multicast_cluster_all);
    form.to = address_operand(Purpose::to);
    form.barrier = address_operand(Purpose::barrier);
    code.target = static_cast<uint32_t>(image_.asyncs.size());
    select_async(code);
    image_.asyncs.push_back(form);
    return true;
  }
  code.a = source(Purpose::source);
  const bool asks = w.has(Mod::is_canceled);
  select_query_cancel(code, asks);
  if (asks) {
    code.dst = destination(Purpose::result);
    return true;
  }
  const RegisterList list = register_list(Purpose::result);
  code.list = list.first;
  code.count = static_cast<uint8_t>(list.count);
  code.immediate = w.has(Mod::get_first_ctaid_y) ? 1 : w.has(Mod::get_first_ctaid_z) ? 2 : 0;
  return true;
}

// st.async, red.async
bool Decoder::asynchronous_store(Code& code) {
  const Words w = words();
  AsyncForm form;
  form.action = instruction_->op == Op::st ? AsyncAction::store : AsyncAction::reduce;
  const Type type = instruction_->type();
  form.to = address_operand(Purpose::address);
  form.barrier = address_operand(Purpose::barrier);
  if (form.action == AsyncAction::reduce) {
    form.update = find_update(update_operation(w.mods), type, Adder::of_threads);
    if (!form.update.apply) return false;
  }
  const RegisterList list = register_list(Purpose::source);
  code.list = list.first;
  code.count = static_cast<uint8_t>(list.count);
  code.element_bytes = static_cast<uint8_t>(ptx::byte_width(type));
  code.target = static_cast<uint32_t>(image_.asyncs.size());
  select_async(code);
  image_.asyncs.push_back(form);
  return true;
}

bool Decoder::mbarrier(Code& code) {
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
  if (has(Purpose::result)) code.dst = destination(Purpose::result);
  if (form.action == MbarrierAction::pending_count) {
    code.a = source(Purpose::source);
    code.element_bytes = 4;
  } else {
    if (!address(code, Purpose::address)) return false;
    form.has_count = has(Purpose::source);
    if (form.has_count) code.b = source(Purpose::source);
    ignore_operand(Purpose::limit);
  }
  select_mbarrier(code, form.action);
  if (form.action == MbarrierAction::try_wait) code.kind = Kind::mbarrier_wait;
  image_.mbarriers.push_back(form);
  return true;
}

// mapa, getctarank.
bool Decoder::cluster_address(Code& code) {
  if (instruction_->op == Op::clusterlaunchcontrol) return launch_control(code);
  if (instruction_->space != Space::generic && !is_shared(instruction_->space)) return false;
  const bool wide = instruction_->type() == Type::u64;
  code.dst = destination(Purpose::result);
  code.a = source(Purpose::source);
  if (instruction_->op == Op::getctarank) {
    code.element_bytes = 4;
    code.run = wide ? rank_of_address<uint64_t> : rank_of_address<uint32_t>;
    return true;
  }
  code.element_bytes = wide ? 8 : 4;
  code.b = source(Purpose::rank);
  code.run = wide ? map_address<uint64_t> : map_address<uint32_t>;
  return true;
}

}  // namespace ptxkit::emulator
