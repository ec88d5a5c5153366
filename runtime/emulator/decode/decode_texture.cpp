// The decoder for textures and surfaces. PTX ISA 9.0, 9.7.10 and 9.7.11.
#include <algorithm>

#include "runtime/emulator/decode/decode.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Purpose;
using ptx::Space;
using ptx::Type;

struct Geometry {
  Mod word;
  ImageShape shape;
  unsigned axes;
  bool layered;
};
constexpr Geometry kGeometries[] = {
    {Mod::_1d, ImageShape::one_dim, 1, false},        {Mod::_2d, ImageShape::two_dim, 2, false},
    {Mod::_3d, ImageShape::three_dim, 3, false},      {Mod::a1d, ImageShape::one_dim_array, 1, true},
    {Mod::a2d, ImageShape::two_dim_array, 2, true},   {Mod::cube, ImageShape::cube, 3, false},
    {Mod::acube, ImageShape::cube_array, 3, true},    {Mod::_2dms, ImageShape::two_dim, 2, false},
    {Mod::a2dms, ImageShape::two_dim_array, 2, true},
};

}  // namespace

// A handle in a register, or a variable of type .texref, .samplerref or .surfref.
bool Decoder::image_handle(HandleOperand& out, Purpose purpose) {
  const ptx::MatchedOperand* given = take(purpose);
  if (given == nullptr) return false;
  const Operand& operand = given->operand;
  const bool is_address = operand.kind == OperandKind::address;
  if (operand.kind == OperandKind::reg || (is_address && operand.base == ptx::AddressBase::reg)) {
    if (register_bytes(operand.id) != 8) return false;
    out.from = HandleOperand::From::reg;
    out.ref = slot(operand.id, operand.component);
    return true;
  }
  if (operand.kind != OperandKind::symbol && !(is_address && operand.base == ptx::AddressBase::variable)) return false;
  const ptx::Variable& variable = module_.variables[operand.id];
  if (!layout_.placed[operand.id] || lives_in_frame(module_, variable)) return false;
  out.offset = layout_.offset[operand.id];
  out.from = variable.space == Space::param ? HandleOperand::From::param : HandleOperand::From::global;
  return variable.space == Space::param || variable.space == Space::global;
}

// The validator ensures that the registers of one list have one width.
bool Decoder::surface_data(TextureForm& form, Purpose purpose) {
  const ptx::MatchedOperand* given = take(purpose);
  if (given == nullptr || element_count(given->operand) != instruction_->vector) return false;
  form.register_bytes = std::max<uint8_t>(2, form.element_bytes);
  for (unsigned i = 0; i < instruction_->vector; ++i)
    if (const Operand each = element(given->operand, i); each.kind == OperandKind::reg)
      form.register_bytes = static_cast<uint8_t>(register_bytes(each.id));
  const Type type = form.register_bytes == 8 ? Type::b64 : form.register_bytes == 4 ? Type::b32 : Type::b16;
  std::vector<Ref> refs;
  for (unsigned i = 0; i < instruction_->vector; ++i) {
    const Operand each = element(given->operand, i);
    refs.push_back(purpose == Purpose::source ? source(each, type) : destination(each, form.register_bytes));
  }
  form.data = add_refs(refs);
  return form.register_bytes >= form.element_bytes;
}

bool Decoder::texture(Code& code) {
  const Words w = words();
  const Op op = instruction_->op;
  const bool is_query = op == Op::txq || op == Op::suq;
  const bool writes_memory = op == Op::sust || op == Op::sured;
  TextureForm form;
  form.layer = constant(0, 4);
  code.undefined = Undefined::handler;
  code.target = static_cast<uint32_t>(image_.textures.size());
  auto finish = [&] {
    select_texture(code, op);
    image_.textures.push_back(form);
    return true;
  };
  if (!image_handle(form.image, Purpose::image)) return false;
  if (is_query) {
    for (Mod each : w.mods)
      if (each != Mod::level) form.query = each;
    const bool asks_sampler = form.query == Mod::filter_mode || form.query == Mod::addr_mode_0 ||
                              form.query == Mod::addr_mode_1 || form.query == Mod::addr_mode_2 ||
                              form.query == Mod::force_unnormalized_coords;
    const auto& options = module_.target_options;
    form.of_sampler = asks_sampler && std::find(options.begin(), options.end(), "texmode_independent") != options.end();
    form.data = register_list(Purpose::result);
    if (has(Purpose::level)) form.level = source(Purpose::level);
    return finish();
  }
  const Geometry* geometry = nullptr;
  for (const Geometry& each : kGeometries)
    if (w.has(each.word)) geometry = &each;
  const ptx::MatchedOperand* place = take(Purpose::coordinates);
  if (!geometry || place == nullptr) return false;
  form.shape = geometry->shape;
  if (has(Purpose::sampler) && !image_handle(form.sampler, Purpose::sampler)) return false;
  // The sample, the layer, then the coordinates; further elements only fill the vector.
  const bool is_sampled = w.has(Mod::_2dms) || w.has(Mod::a2dms);
  const unsigned first = (geometry->layered ? 1 : 0) + (is_sampled ? 1 : 0);
  if (element_count(place->operand) < first + geometry->axes) return false;
  form.integer_coordinates = place->spec.type == Type::s32;
  if (is_sampled) form.sample = source(element(place->operand, 0), Type::u32);
  if (geometry->layered) form.layer = source(element(place->operand, first - 1), Type::u32);
  auto list_of = [&](const ptx::MatchedOperand& list, unsigned from, unsigned count) {
    std::vector<Ref> refs;
    for (unsigned i = from; i < from + count; ++i) refs.push_back(source(element(list.operand, i), list.spec.type));
    return add_refs(refs);
  };
  form.coordinates = list_of(*place, first, geometry->axes);
  form.type = instruction_->types[0];
  if (op == Op::suld || writes_memory) {
    form.formatted = w.has(Mod::p);
    form.out_of_range = w.has(Mod::clamp) ? OutOfRange::clamp : w.has(Mod::zero) ? OutOfRange::zero : OutOfRange::trap;
    form.element_bytes = static_cast<uint8_t>(ptx::byte_width(form.type));
    if (!surface_data(form, writes_memory ? Purpose::source : Purpose::result)) return false;
    if (op == Op::sured) {
      const Mod operation = update_operation(w.mods);
      form.update = find_update(operation, form.type, Adder::of_memory_flushing);
      form.signed_update = form.formatted ? find_update(operation, Type::s32, Adder::of_memory_flushing) : form.update;
      if (form.update.apply == nullptr || form.signed_update.apply == nullptr) return false;
      code.order = Order::relaxed;
      code.scope = Scope::gpu;
    }
    return finish();
  }
  // Textures have one level, to which every level of detail and gradient is clamped. No texture supports depth
  // comparison.
  if (form.integer_coordinates && has(Purpose::level)) form.level = source(Purpose::level);
  for (Purpose each : {Purpose::level, Purpose::gradient_x, Purpose::gradient_y, Purpose::depth}) ignore_operand(each);
  if (has(Purpose::offsets)) {
    const ptx::MatchedOperand* offsets = take(Purpose::offsets);
    form.offsets = list_of(*offsets, 0, std::min(element_count(offsets->operand), geometry->axes));
  }
  if (has(Purpose::second_result)) form.resident = destination(Purpose::second_result);
  form.data = register_list(Purpose::result);
  if (form.data.count != (form.type == Type::f16x2 ? 2u : 4u)) return false;
  if (op == Op::tld4) form.channel = w.has(Mod::r) ? 0 : w.has(Mod::g) ? 1 : w.has(Mod::b) ? 2 : 3;
  return finish();
}

}  // namespace ptxkit::emulator
