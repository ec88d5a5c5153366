// The decoder for moves: between registers and vectors, between address spaces, and of the stack.
// PTX ISA 9.0, 9.7.9 and 9.7.15.
// PTX ISA 9.0, 9.7.9 and 9.7.15.
#include <algorithm>
#include <cstring>

#include "runtime/emulator/core/state.hpp"
#include "runtime/emulator/decode/decode.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Purpose;
using ptx::Space;
using ptx::Type;

void copy_16_bytes(Warp& warp, const Code& code, uint32_t mask) {
  const uint8_t* a = at<const uint8_t>(warp, code.a);
  uint8_t* d = at<uint8_t>(warp, code.dst);
  for_lanes(mask, [&](unsigned i) { std::memmove(d + size_t{i} * 16, a + size_t{i} * 16, 16); });
}

// Copies the elements of a vector from the first half of `list` to the second, with their undefined bits.
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

// mov.b64 d, {x, y} and the reverse: parts of element_bytes in `list`, the whole in register_bytes.
template <bool kPack>
void pack(Warp& warp, const Code& code, uint32_t mask) {
  const Ref* parts = warp.cta->launch->image->refs.data() + code.list;
  const unsigned part = code.element_bytes, whole = code.register_bytes;
  const unsigned stride = std::max(2u, part);  // a byte occupies a slot of two
  // Through a copy, because a part may be the same register as the whole.
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
    // The window of parameters counts as global memory. The memory of another CTA is not in .shared::cta.
    const bool other = window == kSharedWindow >> kWindowShift || window == kLocalWindow >> kWindowShift ||
                       window == kConstWindow >> kWindowShift;
    bool holds = code.immediate ? window == code.immediate : !other;
    if (code.space == ptx::Space::shared && holds) {
      uint64_t offset = a[i] & (sizeof(T) == 4 ? (1u << kNarrowWindowShift) - 1 : kWindowMask);
      holds = owner_of(*warp.cta, ptx::Space::generic, offset) == warp.cta;
    }
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

bool Decoder::move(Code& code) {
  if (instruction_->op == Op::activemask) {
    code.dst = destination(Purpose::result);
    code.undefined = Undefined::none;
    code.run = read_active;
    return true;
  }
  const Type type = instruction_->type();
  const unsigned bytes = ptx::byte_width(type);
  if (type == Type::pred) {
    code.immediate = place(code).flipped ? 0xffffffff : 0;
    return select_predicate(code, Op::mov);
  }
  if (instruction_->vector > 1) return move_vector(code);
  const ptx::MatchedOperand *result = take(Purpose::result), *given = take(Purpose::source);
  if (result == nullptr || given == nullptr) return false;
  const Operand &to = result->operand, &from = given->operand;
  const bool packs = element_count(from) > 1, unpacks = element_count(to) > 1;
  if (packs && unpacks) return false;
  if (packs || unpacks) {
    const Operand& parts = packs ? from : to;
    const unsigned count = element_count(parts);
    if (bytes % count) return false;
    const unsigned part_bytes = bytes / count;
    static constexpr Type kParts[] = {Type::none, Type::b8,   Type::b16,  Type::none, Type::b32,
                                      Type::none, Type::none, Type::none, Type::b64};
    if (part_bytes > 8) return false;
    code.element_bytes = static_cast<uint8_t>(part_bytes);
    code.register_bytes = static_cast<uint8_t>(bytes);
    code.count = static_cast<uint8_t>(count);
    std::vector<Ref> refs;
    refs.reserve(count);
    for (unsigned i = 0; i < count; ++i) {
      const Operand each = element(parts, i);
      // `_` among packed elements: undefined bits.
      if (packs && each.kind == OperandKind::sink)
        refs.push_back(unwritten(std::max(2u, part_bytes)));
      else
        refs.push_back(packs ? source(each, kParts[part_bytes]) : destination(each, part_bytes));
    }
    code.list = add_refs(refs).first;
    if (packs)
      code.dst = destination(to, bytes);
    else
      code.a = source(from, type);
    code.undefined = Undefined::handler;
    code.run = packs ? pack<true> : pack<false>;
    return true;
  }
  code.dst = destination(to, bytes);
  code.element_bytes = static_cast<uint8_t>(std::max(2u, bytes));
  if (from.kind == OperandKind::symbol && lives_in_frame(module_, module_.variables[from.id])) {
    // Base of the frame + offset.
    if (bytes != 4 && bytes != 8) return false;
    code.a = bytes == 8 ? kFrameBase64Ref : kFrameBase32Ref;
    code.b = constant(layout_.offset[from.id] + from.value, bytes);
    return select_integer(code, Op::add, bytes == 8 ? Type::u64 : Type::u32, {});
  }
  code.a = source(from, type);
  if (bytes == 16) {
    code.undefined = Undefined::none;
    code.run = copy_16_bytes;
    return true;
  }
  return select_logic(code, Op::mov, bytes == 1 ? Type::b16 : type, {});
}

// mov.v2 and mov.v4 read all sources before they write a destination.
bool Decoder::move_vector(Code& code) {
  const ptx::MatchedOperand *result = take(Purpose::result), *given = take(Purpose::source);
  if (result == nullptr || given == nullptr) return false;
  const Type type = instruction_->type();
  const unsigned bytes = std::max(2u, ptx::byte_width(type));
  code.count = instruction_->vector;
  std::vector<Ref> refs;
  for (unsigned i = 0; i < element_count(given->operand); ++i) refs.push_back(source(element(given->operand, i), type));
  for (unsigned i = 0; i < element_count(result->operand); ++i)
    refs.push_back(destination(element(result->operand, i), bytes));
  if (refs.size() != 2 * size_t{code.count}) return false;
  code.list = add_refs(refs).first;
  code.element_bytes = static_cast<uint8_t>(bytes);
  code.undefined = Undefined::handler;
  code.run = copy_elements;
  return true;
}

bool Decoder::stack(Code& code) {
  const Type type = instruction_->type();
  const bool wide = type == Type::u64;
  code.immediate = 8;  // alignment
  code.element_bytes = static_cast<uint8_t>(ptx::byte_width(type));
  if (instruction_->op == Op::stackrestore) {
    code.a = source(Purpose::source);
  } else {
    code.dst = destination(Purpose::result);
    if (has(Purpose::size)) code.a = source(Purpose::size);
    if (has(Purpose::alignment)) code.immediate = number(Purpose::alignment);
    if (code.immediate == 0 || (code.immediate & (code.immediate - 1))) refuse("the alignment is no power of two");
  }
  return select_stack(code, instruction_->op, wide);
}

bool Decoder::address_conversion(Code& code) {
  const ptx::MatchedOperand* given = take(Purpose::source);
  if (given == nullptr) return false;
  const Operand& operand = given->operand;
  code.dst = destination(Purpose::result);
  if (instruction_->op == Op::istypep) {
    code.a = source(Purpose::source);
    const Type type = instruction_->type();
    select_image_test(code, type == Type::texref    ? ImageUse::texture
                            : type == Type::surfref ? ImageUse::surface
                                                    : ImageUse::sampler);
    return true;
  }
  if (instruction_->op == Op::isspacep) {
    code.space = instruction_->space;
    code.a = source(operand, narrow_ ? Type::u32 : Type::u64);
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
  code.element_bytes = static_cast<uint8_t>(bytes);
  Space space = instruction_->space;
  const bool frame_variable =
      operand.kind == OperandKind::symbol && lives_in_frame(module_, module_.variables[operand.id]);
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
    window += layout_.offset[operand.id] + operand.value;
  } else {
    code.a = source(operand, type);
  }
  code.b = constant(instruction_->to_space ? uint64_t{0} - window : window, bytes);
  return select_integer(code, Op::add, type, {});
}

}  // namespace ptxkit::emulator
