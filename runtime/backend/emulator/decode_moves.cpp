// The decoder's family of moves: between registers and vectors, between address spaces, the stack.
// PTX ISA 9.0, 9.7.9 and 9.7.15.
#include <algorithm>
#include <cstring>

#include "runtime/backend/emulator/decode.hpp"
#include "runtime/backend/emulator/state.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

void copy_16_bytes(Warp& warp, const Code& code, uint32_t mask) {
  const uint8_t* a = at<const uint8_t>(warp, code.a);
  uint8_t* d = at<uint8_t>(warp, code.dst);
  for_lanes(mask, [&](unsigned i) { std::memmove(d + size_t{i} * 16, a + size_t{i} * 16, 16); });
}

// The elements of a vector from the first half of `list` to the second, undefined bits included.
void copy_elements(Warp& warp, const Code& code, uint32_t mask) {
  const Ref* list = warp.cta->launch->image->refs.data() + code.list;
  const size_t bytes = code.element_bytes;
  const bool checked = warp.undefined[0] != nullptr;
  uint8_t values[4][8 * kLanes], bits[4][8 * kLanes];
  uint32_t undefined[4] = {}, origin[4] = {};
  for (unsigned k = 0; k < code.count; ++k) {
    std::memcpy(values[k], at<uint8_t>(warp, list[k]), bytes * kLanes);
    if (!checked || !(undefined_lanes(warp, list[k]) & mask)) continue;
    undefined[k] = undefined_lanes(warp, list[k]);
    origin[k] = origin_of(warp, list[k]);
    std::memcpy(bits[k], shadow_at<uint8_t>(warp, list[k]), bytes * kLanes);
  }
  for (unsigned k = 0; k < code.count; ++k) {
    const Ref to = list[code.count + k];
    for_lanes(mask, [&](unsigned i) {
      std::memcpy(at<uint8_t>(warp, to) + i * bytes, values[k] + i * bytes, bytes);
      if (undefined[k] >> i & 1) std::memcpy(shadow_at<uint8_t>(warp, to) + i * bytes, bits[k] + i * bytes, bytes);
    });
    if (!checked) continue;
    undefined_lanes(warp, to) = (undefined_lanes(warp, to) & ~mask) | (undefined[k] & mask);
    if (undefined[k]) origin_of(warp, to) = origin[k];
  }
}

void read_active(Warp& warp, const Code& code, uint32_t mask) {
  for_lanes(mask, [&](unsigned i) { at<uint32_t>(warp, code.dst)[i] = mask; });
}

// mov.b64 d, {x, y} and back: parts of element_bytes in `list`, the whole in register_bytes.
template <bool kPack>
void pack(Warp& warp, const Code& code, uint32_t mask) {
  const Ref* parts = warp.cta->launch->image->refs.data() + code.list;
  const unsigned part = code.element_bytes, whole = code.register_bytes;
  const unsigned stride = std::max(2u, part);  // a byte lies in a slot of two
  // Through a copy: a part may be the whole's own register.
  uint8_t values[16 * kLanes], bits[16 * kLanes];
  const bool checked = warp.undefined[0] != nullptr;
  uint32_t undefined = 0;
  for (unsigned k = 0; k < code.count; ++k) {
    Ref ref = kPack ? parts[k] : code.a;
    const uint8_t* from = at<const uint8_t>(warp, ref);
    const bool marked = checked && (undefined_lanes(warp, ref) & mask);
    for_lanes(mask, [&](unsigned i) {
      size_t to = size_t{i} * whole + k * part, source = kPack ? size_t{i} * stride : to;
      std::memcpy(values + to, from + source, part);
      if (!checked) return;
      std::memset(bits + to, 0, part);
      if (marked && (undefined_lanes(warp, ref) >> i & 1))
        std::memcpy(bits + to, shadow_at<uint8_t>(warp, ref) + source, part);
    });
    if (marked) undefined |= undefined_lanes(warp, ref) & mask;
  }
  uint32_t origin = 0;
  if (undefined)
    for (unsigned k = 0; k < (kPack ? code.count : 1u); ++k) {
      Ref ref = kPack ? parts[k] : code.a;
      if (undefined_lanes(warp, ref) & mask) origin = origin_of(warp, ref);
    }
  auto put = [&](Ref ref, unsigned first, unsigned bytes) {
    uint8_t* to = at<uint8_t>(warp, ref);
    uint32_t marks = 0;
    for_lanes(mask, [&](unsigned i) {
      const size_t at_lane = size_t{i} * std::max(2u, bytes);
      std::memcpy(to + at_lane, values + size_t{i} * whole + first, bytes);
      if (!undefined) return;
      const uint8_t* from = bits + size_t{i} * whole + first;
      for (unsigned byte = 0; byte < bytes; ++byte) marks |= from[byte] ? 1u << i : 0u;
      std::memcpy(shadow_at<uint8_t>(warp, ref) + at_lane, from, bytes);
    });
    if (!checked) return;
    undefined_lanes(warp, ref) = (undefined_lanes(warp, ref) & ~mask) | marks;
    if (marks) origin_of(warp, ref) = origin;
  };
  if constexpr (kPack) {
    put(code.dst, 0, whole);
  } else {
    for (unsigned k = 0; k < code.count; ++k) put(parts[k], k * part, part);
  }
}

template <class T>
void test_space(Warp& warp, const Code& code, uint32_t mask) {
  const T* a = at<const T>(warp, code.a);
  uint32_t bits = 0;
  for_lanes(mask, [&](unsigned i) {
    uint64_t window = (sizeof(T) == 4 ? widen_address(static_cast<uint32_t>(a[i])) : a[i]) >> kWindowShift;
    bool other = window == kSharedWindow >> kWindowShift || window == kLocalWindow >> kWindowShift ||
                 window == kConstWindow >> kWindowShift || window == kParamWindow >> kWindowShift;
    bool holds = code.immediate ? window == code.immediate : !other;
    bits |= uint32_t{holds} << i;
  });
  uint32_t* d = at<uint32_t>(warp, code.dst);
  *d = (*d & ~mask) | bits;
}

}  // namespace

// A slot of the frame that no instruction writes.
Ref Decoder::unwritten(unsigned bytes) {
  FunctionImage& function = image_.functions[function_id_];
  const Ref slot = function.frame_units;
  function.frame_units += units(bytes);
  return slot;
}

bool Decoder::move(Code& code, Operands operands) {
  if (instruction_->op == Op::activemask) {
    if (operands.size() != 1) return false;
    code.dst = destination(operands[0], 4);
    code.undefined = Undefined::none;
    code.run = read_active;
    return true;
  }
  if (operands.size() != 2) return false;
  const Type type = instruction_->type();
  const unsigned bytes = ptx::byte_width(type);
  if (type == Type::pred) {
    bool flipped = false;
    code.dst = destination_predicate(operands[0]);
    code.a = predicate(operands[1], flipped);
    code.immediate = flipped ? 0xffffffff : 0;
    return select_predicate(code, Op::mov);
  }
  if (instruction_->vector > 1) return move_vector(code, operands);
  auto whole_vector = [&](const Operand& operand) {
    return operand.kind == OperandKind::reg && !operand.component && function_->registers[operand.id].vector > 1;
  };
  auto parts_of = [&](const Operand& operand) {
    std::vector<Operand> parts;
    if (operand.kind == OperandKind::vector)
      for (const Operand& each : function_->children(operand)) parts.push_back(each);
    else if (whole_vector(operand))
      for (unsigned k = 0; k < function_->registers[operand.id].vector; ++k) {
        parts.push_back(operand);
        parts.back().component = static_cast<uint8_t>("xyzw"[k % 4]);
      }
    return parts;
  };
  const bool packs = operands[1].kind == OperandKind::vector || whole_vector(operands[1]);
  const bool unpacks = operands[0].kind == OperandKind::vector || whole_vector(operands[0]);
  if (packs && unpacks) return false;
  if (packs || unpacks) {
    const std::vector<Operand> parts = parts_of(operands[packs ? 1 : 0]);
    if (parts.empty() || bytes % parts.size()) return false;
    const auto part_bytes = static_cast<unsigned>(bytes / parts.size());
    static constexpr Type kParts[] = {Type::none, Type::b8,   Type::b16,  Type::none, Type::b32,
                                      Type::none, Type::none, Type::none, Type::b64};
    if (part_bytes > 8) return false;
    code.element_bytes = static_cast<uint8_t>(part_bytes);
    code.register_bytes = static_cast<uint8_t>(bytes);
    code.count = static_cast<uint8_t>(parts.size());
    std::vector<Ref> refs;
    refs.reserve(parts.size());
    for (const Operand& each : parts) {
      // `_` among what is packed: bits that nobody has written.
      if (packs && each.kind == OperandKind::sink)
        refs.push_back(unwritten(std::max(2u, part_bytes)));
      else
        refs.push_back(packs ? source(each, kParts[part_bytes]) : destination(each, part_bytes));
    }
    code.list = static_cast<uint32_t>(image_.refs.size());
    image_.refs.insert(image_.refs.end(), refs.begin(), refs.end());
    if (packs)
      code.dst = destination(operands[0], bytes);
    else
      code.a = source(operands[1], type);
    code.undefined = Undefined::handler;
    code.run = packs ? pack<true> : pack<false>;
    return true;
  }
  code.dst = destination(operands[0], bytes);
  code.element_bytes = static_cast<uint8_t>(std::max(2u, bytes));
  if (operands[1].kind == OperandKind::symbol && lives_in_frame(module_, module_.variables[operands[1].id])) {
    // base of the frame + offset
    if (bytes != 4 && bytes != 8) return false;
    code.a = bytes == 8 ? kFrameBase64Ref : kFrameBase32Ref;
    code.b = constant(layout_.offset[operands[1].id] + operands[1].value, bytes);
    return select_integer(code, Op::add, bytes == 8 ? Type::u64 : Type::u32, {});
  }
  code.a = source(operands[1], type);
  if (bytes == 16) {
    code.undefined = Undefined::none;
    code.run = copy_16_bytes;
    return true;
  }
  return select_logic(code, Op::mov, bytes == 1 ? Type::b16 : type, {});
}

// mov.v2 and mov.v4: all sources are read before a destination is written.
bool Decoder::move_vector(Code& code, Operands operands) {
  const Type type = instruction_->type();
  const unsigned bytes = std::max(2u, ptx::byte_width(type));
  code.count = instruction_->vector;
  auto elements = [&](const Operand& operand, bool reads) {
    std::vector<Ref> refs;
    if (operand.kind == OperandKind::vector) {
      for (const Operand& each : function_->children(operand))
        refs.push_back(reads ? source(each, type) : destination(each, bytes));
    } else if (operand.kind == OperandKind::reg && function_->registers[operand.id].vector == code.count) {
      for (unsigned k = 0; k < code.count; ++k) refs.push_back(slot(operand.id, 0) + k * units(bytes));
    } else if (operand.kind == OperandKind::special && reads &&
               ptx::is_vector(static_cast<ptx::SpecialRegister>(operand.id))) {
      Operand part = operand;
      for (unsigned k = 0; k < code.count; ++k) {
        part.component = static_cast<uint8_t>("xyzw"[k]);
        refs.push_back(special(part, bytes));
      }
    }
    return refs;
  };
  const std::vector<Ref> to = elements(operands[0], false), from = elements(operands[1], true);
  if (to.size() != code.count || from.size() != code.count) return false;
  code.list = static_cast<uint32_t>(image_.refs.size());
  image_.refs.insert(image_.refs.end(), from.begin(), from.end());
  image_.refs.insert(image_.refs.end(), to.begin(), to.end());
  code.element_bytes = static_cast<uint8_t>(bytes);
  code.undefined = Undefined::handler;
  code.run = copy_elements;
  return true;
}

bool Decoder::stack(Code& code, Operands operands) {
  const Type type = instruction_->type();
  const bool wide = type == Type::u64;
  code.immediate = 8;  // alignment
  code.element_bytes = static_cast<uint8_t>(ptx::byte_width(type));
  if (instruction_->op == Op::stackrestore) {
    code.a = source(operands[0], type);
  } else {
    code.dst = destination(operands[0], ptx::byte_width(type));
    if (operands.size() > 1) code.a = source(operands[1], type);
    if (operands.size() > 2) code.immediate = operands[2].value;
    if (code.immediate == 0 || (code.immediate & (code.immediate - 1))) refuse("the alignment is no power of two");
  }
  return select_stack(code, instruction_->op, wide);
}

bool Decoder::address_conversion(Code& code, Operands operands) {
  if (operands.size() != 2) return false;
  if (instruction_->op == Op::istypep) {
    code.dst = destination_predicate(operands[0]);
    code.a = source(operands[1], Type::u64);
    const Type type = instruction_->type();
    select_image_test(code, type == Type::texref    ? ImageUse::texture
                            : type == Type::surfref ? ImageUse::surface
                                                    : ImageUse::sampler);
    return true;
  }
  if (instruction_->op == Op::isspacep) {
    code.dst = destination_predicate(operands[0]);
    code.a = source(operands[1], narrow_ ? Type::u32 : Type::u64);
    switch (instruction_->space) {
      case Space::shared:
      case Space::shared_cluster:
        code.immediate = kSharedWindow >> kWindowShift;
        break;
      case Space::local:
        code.immediate = kLocalWindow >> kWindowShift;
        break;
      case Space::constant:
        code.immediate = kConstWindow >> kWindowShift;
        break;
      case Space::param:
        code.immediate = kParamWindow >> kWindowShift;
        break;
      case Space::global:
        code.immediate = 0;
        break;
      default:
        return false;
    }
    code.run = narrow_ ? test_space<uint32_t> : test_space<uint64_t>;
    return true;
  }
  const Type type = instruction_->type();
  const unsigned bytes = ptx::byte_width(type);
  code.dst = destination(operands[0], bytes);
  code.element_bytes = static_cast<uint8_t>(bytes);
  Space space = instruction_->space;
  const bool frame_variable =
      operands[1].kind == OperandKind::symbol && lives_in_frame(module_, module_.variables[operands[1].id]);
  if (space == Space::param && (frame_variable || !function_->is_entry)) space = Space::local;
  uint64_t window = 0;
  switch (space) {
    case Space::shared:
    case Space::shared_cluster:
      window = kSharedWindow;
      break;
    case Space::local:
      window = kLocalWindow;
      break;
    case Space::constant:
      window = kConstWindow;
      break;
    case Space::param:
      window = kParamWindow;
      break;
    case Space::global:
      window = 0;
      break;
    default:
      return false;
  }
  const bool narrow = type == Type::u32;
  if (narrow && window) window = narrow_window(window);
  if (frame_variable) {
    code.a = narrow ? kFrameBase32Ref : kFrameBase64Ref;
    window += layout_.offset[operands[1].id] + operands[1].value;
  } else {
    code.a = source(operands[1], type);
  }
  code.b = constant(instruction_->to_space ? uint64_t{0} - window : window, bytes);
  return select_integer(code, Op::add, type, {});
}

}  // namespace ptxkit::emulator
