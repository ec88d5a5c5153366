// Bits: logic, shifts, fields, permutes, selection, moves; the same on predicates.
// PTX ISA 9.0, 9.7.7, 9.7.8, 9.7.9, 9.7.1.
#include "runtime/emulator/core/logic.hpp"

#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/core/lanes.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Op;
using ptx::Type;

template <class T>
inline T shift_left(T a, uint32_t b) {
  return b < 8 * sizeof(T) ? static_cast<T>(a << b) : T{0};
}
template <class T>
inline T shift_right(T a, uint32_t b) {
  constexpr uint32_t kWidth = 8 * sizeof(T);
  if constexpr (std::is_signed_v<T>) return static_cast<T>(a >> (b < kWidth ? b : kWidth - 1));
  return b < kWidth ? static_cast<T>(a >> b) : T{0};
}

template <class U>
inline U reverse(U value) {
  U out = 0;
  for (unsigned i = 0; i < 8 * sizeof(U); ++i) out = static_cast<U>(out << 1 | (value >> i & 1));
  return out;
}

// bmsk: `width` ones from bit `position` up. Both are used unchanged (clamp) or modulo 32 (wrap).
inline uint32_t bit_mask(uint32_t position, uint32_t width, bool wrap) {
  if (wrap) {
    position &= 31;
    width &= 31;
  }
  uint64_t ones = width >= 32 ? 0xffffffffull : (uint64_t{1} << width) - 1;
  return position >= 32 ? 0 : static_cast<uint32_t>(ones << position);
}

// szext: sign or zero extends the low `bits` bits.
template <class T, bool kWrap>
inline uint32_t extend(uint32_t a, uint32_t bits) {
  if (kWrap) bits &= 31;
  if (bits >= 32) return a;
  if (bits == 0) return 0;
  uint32_t up = a << (32 - bits);
  if constexpr (std::is_signed_v<T>) return static_cast<uint32_t>(static_cast<int32_t>(up) >> (32 - bits));
  return up >> (32 - bits);
}

template <bool kLeft, bool kWrap>
inline uint32_t funnel(uint32_t low, uint32_t high, uint32_t count) {
  uint32_t n = kWrap ? count & 31 : (count < 32 ? count : 32);
  uint64_t both = uint64_t{high} << 32 | low;
  return kLeft ? static_cast<uint32_t>((both << n) >> 32) : static_cast<uint32_t>(both >> n);
}

template <class T>
inline T extract(T a, uint32_t b, uint32_t c) {
  using U = std::make_unsigned_t<T>;
  constexpr uint32_t kTop = 8 * sizeof(T) - 1;
  // With 32 bits only the low byte of position and length is used, with 64 bits all of each.
  constexpr uint32_t kCounts = sizeof(T) == 8 ? 0xffffffff : 0xff;
  const uint64_t position = b & kCounts, length = c & kCounts;
  if (length == 0) return 0;
  U bits = position <= kTop ? static_cast<U>(static_cast<U>(a) >> position) : U{0};
  bool negative = false;
  if constexpr (std::is_signed_v<T>) {
    const uint64_t sign_at = position + length - 1 < kTop ? position + length - 1 : kTop;
    negative = static_cast<U>(a) >> sign_at & 1;
  }
  // Copies of the sign fill the result above the field, and above the bits of the field that the word contains.
  const uint64_t have = position <= kTop ? kTop + 1 - position : 0;
  const uint64_t field = length < have ? length : have;
  if (field > kTop) return static_cast<T>(bits);
  U ones = static_cast<U>((U{1} << field) - 1);
  bits &= ones;
  return static_cast<T>(negative ? bits | static_cast<U>(~ones) : bits);
}

template <class U>
inline U insert(U a, U b, uint32_t c, uint32_t d) {
  constexpr uint32_t kWidth = 8 * sizeof(U);
  constexpr uint32_t kCounts = sizeof(U) == 8 ? 0xffffffff : 0xff;
  const uint32_t position = c & kCounts, length = d & kCounts;
  if (position >= kWidth || length == 0) return b;
  U ones = length >= kWidth ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << length) - 1);
  ones = static_cast<U>(ones << position);
  return static_cast<U>((b & ~ones) | (static_cast<U>(a << position) & ones));
}

void lop3(Warp& warp, const Code& code, uint32_t mask) {
  const uint32_t* a = at<const uint32_t>(warp, code.a);
  const uint32_t* b = at<const uint32_t>(warp, code.b);
  const uint32_t* c = at<const uint32_t>(warp, code.c);
  uint32_t* d = at<uint32_t>(warp, code.dst);
  const auto table = static_cast<uint32_t>(code.immediate);
  auto one = [&](unsigned i) { return lop3_value(a[i], b[i], c[i], table); };
  if (mask == kAllLanes) {
    PTXKIT_INDEPENDENT_TURNS
    for (unsigned i = 0; i < kLanes; ++i) d[i] = one(i);
  } else {
    for_lanes(mask, [&](unsigned i) { d[i] = one(i); });
  }
  // lop3.BoolOp: p = (d != 0) BoolOp q
  if (code.sub) {
    uint32_t q = *at<const uint32_t>(warp, code.d), p = 0;
    for_lanes(mask, [&](unsigned i) { p |= uint32_t{d[i] != 0} << i; });
    p = code.sub == 1 ? p & q : p | q;
    uint32_t* out = at<uint32_t>(warp, code.dst2);
    *out = (*out & ~mask) | (p & mask);
  }
}

template <int kMode>
void permute(Warp& warp, const Code& code, uint32_t mask) {
  const uint32_t* a = at<const uint32_t>(warp, code.a);
  const uint32_t* b = at<const uint32_t>(warp, code.b);
  const uint32_t* c = at<const uint32_t>(warp, code.c);
  uint32_t* d = at<uint32_t>(warp, code.dst);
  for_lanes(mask, [&](unsigned i) { d[i] = permute_value(a[i], b[i], permute_selector(c[i], kMode), kMode == 0); });
}

template <class U>
void select(Warp& warp, const Code& code, uint32_t mask) {
  const U* a = at<const U>(warp, code.a);
  const U* b = at<const U>(warp, code.b);
  uint32_t p = *at<const uint32_t>(warp, code.c) ^ static_cast<uint32_t>(code.immediate);
  U* d = at<U>(warp, code.dst);
  if (mask == kAllLanes) {
    PTXKIT_INDEPENDENT_TURNS
    for (unsigned i = 0; i < kLanes; ++i) d[i] = p >> i & 1 ? a[i] : b[i];
  } else {
    for_lanes(mask, [&](unsigned i) { d[i] = p >> i & 1 ? a[i] : b[i]; });
  }
}

template <class U>
bool select_width(Code& code, Op op, Type type, const Words& words) {
  using S = std::make_signed_t<U>;
  const bool is_signed = ptx::kind(type) == ptx::TypeKind::signed_int;
  switch (op) {
    case Op::mov:
      code.undefined = Undefined::copy;
      code.run = lanes<[](U a) { return a; }, U, U>;
      return true;
    case Op::and_:
      code.undefined = Undefined::bit_and;
      code.run = lanes<[](U a, U b) { return a & b; }, U, U, U>;
      return true;
    case Op::or_:
      code.undefined = Undefined::bit_or;
      code.run = lanes<[](U a, U b) { return a | b; }, U, U, U>;
      return true;
    case Op::xor_:
      code.undefined = Undefined::bit_xor;
      code.run = lanes<[](U a, U b) { return a ^ b; }, U, U, U>;
      return true;
    case Op::not_:
      code.undefined = Undefined::copy;
      code.run = lanes<[](U a) { return ~a; }, U, U>;
      return true;
    case Op::cnot:
      code.run = lanes<[](U a) { return a == 0; }, U, U>;
      return true;
    case Op::shl:
      code.undefined = Undefined::shift_left;
      code.run = lanes<shift_left<U>, U, U, uint32_t>;
      return true;
    case Op::shr:
      code.undefined = Undefined::shift_right;
      code.is_signed = is_signed;
      code.run =
          is_signed ? Handler{lanes<shift_right<S>, S, S, uint32_t>} : Handler{lanes<shift_right<U>, U, U, uint32_t>};
      return true;
    case Op::selp:
      code.undefined = Undefined::select;
      code.run = select<U>;
      return true;
    case Op::slct:
      if (words.mods.empty() || !words.has(Mod::ftz)) {
        // `sub` holds the type of c: 1 for f32.
        code.run = code.sub ? Handler{lanes<[](U a, U b, float c) { return c >= 0.0f ? a : b; }, U, U, U, float>}
                            : Handler{lanes<[](U a, U b, int32_t c) { return c >= 0 ? a : b; }, U, U, U, int32_t>};
      } else {
        code.run = lanes<[](U a, U b, float c) {
          return c >= 0.0f || (std::bit_cast<uint32_t>(c) & 0x7f800000u) == 0 ? a : b;
        },
                         U, U, U, float>;
      }
      return true;
    default:
      break;
  }
  if constexpr (sizeof(U) >= 4) {
    switch (op) {
      case Op::brev:
        code.run = lanes<reverse<U>, U, U>;
        return true;
      case Op::bfe:
        code.undefined = Undefined::extract;
        code.is_signed = is_signed;
        code.run = is_signed ? Handler{lanes<extract<S>, S, S, uint32_t, uint32_t>}
                             : Handler{lanes<extract<U>, U, U, uint32_t, uint32_t>};
        return true;
      case Op::bfi:
        code.undefined = Undefined::insert;
        code.run = lanes<insert<U>, U, U, U, uint32_t, uint32_t>;
        return true;
      default:
        break;
    }
  }
  return false;
}

}  // namespace

bool select_logic(Code& code, Op op, Type type, const Words& words) {
  const bool wrap = words.has(Mod::wrap), clamp = words.has(Mod::clamp);
  switch (op) {
    case Op::lop3:
      code.undefined = Undefined::any;
      code.run = lop3;
      return type == Type::b32;
    case Op::prmt:
      code.undefined = Undefined::byte_permute;
      code.sub = words.has(Mod::f4e)    ? 1
                 : words.has(Mod::b4e)  ? 2
                 : words.has(Mod::rc8)  ? 3
                 : words.has(Mod::ecl)  ? 4
                 : words.has(Mod::ecr)  ? 5
                 : words.has(Mod::rc16) ? 6
                                        : 0;
      switch (code.sub) {
        case 0:
          code.run = permute<0>;
          break;
        case 1:
          code.run = permute<1>;
          break;
        case 2:
          code.run = permute<2>;
          break;
        case 3:
          code.run = permute<3>;
          break;
        case 4:
          code.run = permute<4>;
          break;
        case 5:
          code.run = permute<5>;
          break;
        default:
          code.run = permute<6>;
      }
      return type == Type::b32;
    case Op::shf:
      if (type != Type::b32 || wrap == clamp) return false;
      code.sub = wrap;
      if (words.has(Mod::l)) {
        code.undefined = Undefined::funnel_left;
        code.run = wrap ? Handler{lanes<funnel<true, true>, uint32_t, uint32_t, uint32_t, uint32_t>}
                        : Handler{lanes<funnel<true, false>, uint32_t, uint32_t, uint32_t, uint32_t>};
      } else {
        code.undefined = Undefined::funnel_right;
        code.run = wrap ? Handler{lanes<funnel<false, true>, uint32_t, uint32_t, uint32_t, uint32_t>}
                        : Handler{lanes<funnel<false, false>, uint32_t, uint32_t, uint32_t, uint32_t>};
      }
      return true;
    case Op::bmsk:
      code.run =
          wrap ? Handler{lanes<[](uint32_t a, uint32_t b) { return bit_mask(a, b, true); }, uint32_t, uint32_t,
                               uint32_t>}
               : Handler{
                     lanes<[](uint32_t a, uint32_t b) { return bit_mask(a, b, false); }, uint32_t, uint32_t, uint32_t>};
      return true;
    case Op::szext:
      if (type == Type::s32)
        code.run = wrap ? Handler{lanes<extend<int32_t, true>, uint32_t, uint32_t, uint32_t>}
                        : Handler{lanes<extend<int32_t, false>, uint32_t, uint32_t, uint32_t>};
      else
        code.run = wrap ? Handler{lanes<extend<uint32_t, true>, uint32_t, uint32_t, uint32_t>}
                        : Handler{lanes<extend<uint32_t, false>, uint32_t, uint32_t, uint32_t>};
      return true;
    default:
      break;
  }
  switch (ptx::bit_width(type)) {
    case 16:
      return select_width<uint16_t>(code, op, type, words);
    case 32:
      return select_width<uint32_t>(code, op, type, words);
    case 64:
      return select_width<uint64_t>(code, op, type, words);
    default:
      return false;
  }
}

namespace {

// A register of predicates is one word. `immediate` inverts the first source, `register_bytes` the second (!p
// operands).
template <auto F>
void predicate(Warp& warp, const Code& code, uint32_t mask) {
  uint32_t a = *at<const uint32_t>(warp, code.a) ^ static_cast<uint32_t>(code.immediate);
  uint32_t b = *at<const uint32_t>(warp, code.b) ^ (code.register_bytes ? kAllLanes : 0u);
  uint32_t* d = at<uint32_t>(warp, code.dst);
  *d = (*d & ~mask) | (F(a, b) & mask);
}

}  // namespace

bool select_predicate(Code& code, Op op) {
  code.undefined = Undefined::predicate;
  switch (op) {
    case Op::mov:
      code.run = predicate<[](uint32_t a, uint32_t) { return a; }>;
      code.sub = 0;
      return true;
    case Op::not_:
      code.run = predicate<[](uint32_t a, uint32_t) { return ~a; }>;
      code.sub = 0;
      return true;
    case Op::and_:
      code.run = predicate<[](uint32_t a, uint32_t b) { return a & b; }>;
      code.sub = 1;
      return true;
    case Op::or_:
      code.run = predicate<[](uint32_t a, uint32_t b) { return a | b; }>;
      code.sub = 2;
      return true;
    case Op::xor_:
      code.run = predicate<[](uint32_t a, uint32_t b) { return a ^ b; }>;
      code.sub = 0;
      return true;
    default:
      return false;
  }
}

}  // namespace ptxkit::emulator
