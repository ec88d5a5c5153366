// The decoder's family of textures and surfaces. PTX ISA 9.0, 9.7.10 and 9.7.11.
#include <algorithm>

#include "runtime/backend/emulator/decode.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

struct Geometry {
  Mod word;
  ImageShape shape;
  unsigned axes;
  bool layered;
};
constexpr Geometry kGeometries[] = {
    {Mod::_1d, ImageShape::line, 1, false},   {Mod::_2d, ImageShape::plane, 2, false},
    {Mod::_3d, ImageShape::volume, 3, false}, {Mod::a1d, ImageShape::lines, 1, true},
    {Mod::a2d, ImageShape::planes, 2, true},  {Mod::cube, ImageShape::cube, 3, false},
    {Mod::acube, ImageShape::cubes, 3, true},
};

}  // namespace

// A handle in a register, or a .texref, .samplerref or .surfref.
bool Decoder::image_handle(HandleOperand& out, const Operand& operand) {
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

bool Decoder::texture(Code& code, Operands operands) {
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
  if (operands.size() < 2) return false;
  const Operand& place = operands[writes_memory ? 0 : 1];
  const auto inside = function_->children(place);
  if (place.kind != OperandKind::address || !image_handle(form.image, place)) return false;
  if (is_query) {
    for (Mod each : w.mods)
      if (each != Mod::level) form.query = each;
    const bool asks_sampler = form.query == Mod::filter_mode || form.query == Mod::addr_mode_0 ||
                              form.query == Mod::addr_mode_1 || form.query == Mod::addr_mode_2 ||
                              form.query == Mod::force_unnormalized_coords;
    const auto& options = module_.target_options;
    form.of_sampler = asks_sampler && std::find(options.begin(), options.end(), "texmode_independent") != options.end();
    form.data = register_list(operands[0], Type::b32, true);
    return finish();
  }
  const Geometry* geometry = nullptr;
  for (const Geometry& each : kGeometries)
    if (w.has(each.word)) geometry = &each;
  if (!geometry || inside.empty()) return false;
  form.shape = geometry->shape;
  if (inside.size() > 2 || (inside.size() == 2 && !image_handle(form.sampler, inside[0]))) return false;
  // The layer, then the coordinates; what is more only fills the vector.
  const auto elements = function_->children(inside.back());
  const unsigned first = geometry->layered ? 1 : 0;
  if (inside.back().kind != OperandKind::vector || elements.size() < first + geometry->axes) return false;
  const bool is_surface = op == Op::suld || writes_memory;
  const Type coordinate = is_surface ? Type::s32 : instruction_->types[instruction_->type_count - 1];
  form.integer_coordinates = coordinate == Type::s32;
  if (geometry->layered) form.layer = source(elements[0], Type::u32);
  auto list_of = [&](std::span<const Operand> each, Type type) {
    RegisterList list{static_cast<uint32_t>(image_.refs.size()), static_cast<uint32_t>(each.size())};
    std::vector<Ref> refs;
    for (const Operand& one : each) refs.push_back(source(one, type));
    list.first = static_cast<uint32_t>(image_.refs.size());
    image_.refs.insert(image_.refs.end(), refs.begin(), refs.end());
    return list;
  };
  form.coordinates = list_of(elements.subspan(first, geometry->axes), coordinate);
  form.type = instruction_->types[0];
  if (is_surface) {
    form.formatted = w.has(Mod::p);
    form.out_of_range = w.has(Mod::clamp) ? OutOfRange::clamp : w.has(Mod::zero) ? OutOfRange::zero : OutOfRange::trap;
    form.element_bytes = static_cast<uint8_t>(ptx::byte_width(form.type));
    const Operand& data = operands[writes_memory ? 1 : 0];
    form.data = register_list(data, form.type, !writes_memory);
    if (form.data.count != instruction_->vector) return false;
    if (op == Op::sured) {
      form.update = find_update(update_operation(w.mods), form.type, true);
      if (form.update.apply == nullptr) return false;
      code.order = Order::relaxed;
      code.scope = Scope::gpu;
    }
    return finish();
  }
  // There is one level, which every level of detail and gradient ends at.
  size_t next = 2 + (w.has(Mod::level) ? 1 : 0) + (w.has(Mod::grad) ? 2 : 0);
  if (next < operands.size() && operands[next].kind == OperandKind::vector) {
    const auto offsets = function_->children(operands[next++]);
    form.offsets = list_of(offsets.first(std::min<size_t>(offsets.size(), geometry->axes)), Type::s32);
  }
  if (next < operands.size()) return false;
  const Operand* data = &operands[0];
  if (data->kind == OperandKind::pair) {
    const auto both = function_->children(*data);
    form.resident = destination_predicate(both[1]);
    data = &both[0];
  }
  form.data = register_list(*data, form.type == Type::f16 ? Type::b16 : Type::b32, true);
  if (form.data.count != (form.type == Type::f16x2 ? 2u : 4u)) return false;
  if (op == Op::tld4) form.channel = w.has(Mod::r) ? 0 : w.has(Mod::g) ? 1 : w.has(Mod::b) ? 2 : 3;
  return finish();
}

}  // namespace ptxkit::emulator
