// cvt to and from packed halves and the narrow formats (fp8, fp6, fp4, scale factors), saturation to the largest finite
// number, and cvt.pack. PTX ISA 9.0, 9.7.9.21 and 9.7.9.22.
#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/core/narrow_element.hpp"
#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Type;
using scalar::Round;

// `sub`: rounding in bits 0-2, satfinite bit 3, relu bit 4.
constexpr unsigned kFinite = 8, kRelu = 16;

// 2^(n - 127). The sign is dropped, values below the smallest become the smallest, 0xff is NaN.
uint32_t scale_factor(double value, Round round, bool finite) {
  if (value != value) return 0xff;
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return finite ? 0xfe : 0xff;
  if (magnitude == 0) return 0;
  int exponent = std::ilogb(magnitude);
  if (round == Round::up && std::ldexp(1.0, exponent) < magnitude) ++exponent;
  if (exponent > 127) return finite ? 0xfe : 0xff;
  return exponent < -127 ? 0 : static_cast<uint32_t>(exponent + 127);
}

uint32_t write_element(double value, const Element& to, unsigned flags) {
  const auto round = static_cast<Round>(flags & 7);
  if (!to.format) return scale_factor(value, round, flags & kFinite);
  if (value != value && to.not_a_number) return to.not_a_number;
  if ((flags & kRelu) && value == value && !(value > 0)) value = 0;
  return scalar::narrow(value, *to.format, round, flags & kFinite);
}

double read_element(uint32_t bits, const Element& from) {
  if (!from.format) return bits == 0xff ? NAN : std::ldexp(1.0, static_cast<int>(bits) - 127);
  if (from.bits == 16)
    return from.format == &scalar::kF16 ? scalar::f16_value(static_cast<uint16_t>(bits))
                                        : scalar::bf16_value(static_cast<uint16_t>(bits));
  return scalar::widen(bits, *from.format);
}

void write_register(uint8_t* slot, unsigned lane, unsigned register_bytes, uint64_t value) {
  std::memcpy(slot + size_t{lane} * register_bytes, &value, register_bytes);
}

// cvt.f16x2.f32 d, a, b and similar: a becomes the upper part.
void pack_two(Warp& warp, const Code& code, uint32_t mask) {
  Element to;
  element_of(static_cast<Type>(code.list), to);
  const float* a = at<const float>(warp, code.a);
  const float* b = at<const float>(warp, code.b);
  uint8_t* d = at<uint8_t>(warp, code.dst);
  for_lanes(mask, [&](unsigned i) {
    write_register(d, i, code.register_bytes,
                   write_element(a[i], to, code.sub) << to.bits | write_element(b[i], to, code.sub));
  });
}

// Converts two elements of one packed format to two of another.
void convert_two(Warp& warp, const Code& code, uint32_t mask) {
  Element to, from;
  element_of(static_cast<Type>(code.list), to);
  element_of(static_cast<Type>(code.target), from);
  const uint8_t* a = at<const uint8_t>(warp, code.a);
  uint8_t* d = at<uint8_t>(warp, code.dst);
  for_lanes(mask, [&](unsigned i) {
    uint32_t bits = 0, out = 0;
    std::memcpy(&bits, a + size_t{i} * code.source_bytes, code.source_bytes);
    for (unsigned k = 0; k < 2; ++k) {
      const uint32_t part = bits >> k * from.bits & ((1u << from.bits) - 1);
      out |= write_element(read_element(part, from), to, code.sub) << k * to.bits;
    }
    write_register(d, i, code.register_bytes, out);
  });
}

// f32 to f16, bf16 or tf32 with .satfinite.
void convert_finite(Warp& warp, const Code& code, uint32_t mask) {
  const auto type = static_cast<Type>(code.list);
  Element to{&scalar::kTf32, 32, 0x7fffe000 >> 13};
  element_of(type, to);
  const float* a = at<const float>(warp, code.a);
  uint8_t* d = at<uint8_t>(warp, code.dst);
  for_lanes(mask, [&](unsigned i) {
    uint32_t bits = write_element(a[i], to, code.sub);
    // .satfinite decrements every result with the highest exponent, NaN included.
    if (type == Type::tf32)
      bits = a[i] == a[i] ? bits << 13 : (scalar::to_bits(a[i]) & 0xffffe000u) - (code.sub & kFinite ? 0x2000u : 0u);
    write_register(d, i, code.register_bytes, bits);
  });
}

// cvt.pack.sat: saturates a and b, puts a above b, and shifts c up by both.
template <int kBits, bool kSigned>
void pack_integers(Warp& warp, const Code& code, uint32_t mask) {
  const int32_t* a = at<const int32_t>(warp, code.a);
  const int32_t* b = at<const int32_t>(warp, code.b);
  const uint32_t* c = at<const uint32_t>(warp, code.c);
  uint32_t* d = at<uint32_t>(warp, code.dst);
  auto clamp = [](int32_t value) {
    constexpr int32_t kTop = (1 << (kBits - (kSigned ? 1 : 0))) - 1, kBottom = kSigned ? -kTop - 1 : 0;
    return static_cast<uint32_t>(value > kTop ? kTop : value < kBottom ? kBottom : value) & ((1u << kBits) - 1);
  };
  for_lanes(mask, [&](unsigned i) {
    const uint32_t above = kBits == 16 ? 0 : c[i] << (2 * kBits % 32);
    d[i] = above | clamp(a[i]) << kBits | clamp(b[i]);
  });
}

bool select_pack(Code& code, Type to) {
  switch (to) {
    case Type::u16:
      code.run = pack_integers<16, false>;
      return true;
    case Type::s16:
      code.run = pack_integers<16, true>;
      return true;
    case Type::u8:
      code.run = pack_integers<8, false>;
      return true;
    case Type::s8:
      code.run = pack_integers<8, true>;
      return true;
    case Type::u4:
      code.run = pack_integers<4, false>;
      return true;
    case Type::s4:
      code.run = pack_integers<4, true>;
      return true;
    case Type::u2:
      code.run = pack_integers<2, false>;
      return true;
    case Type::s2:
      code.run = pack_integers<2, true>;
      return true;
    default:
      return false;
  }
}

}  // namespace

bool element_of(Type type, Element& out) {
  switch (type) {
    case Type::f16:
    case Type::f16x2:
      out = {&scalar::kF16, 16, 0x7fff};
      return true;
    case Type::bf16:
    case Type::bf16x2:
      out = {&scalar::kBf16, 16, 0x7fff};
      return true;
    case Type::e4m3x2:
    case Type::e4m3x4:
      out = {&scalar::kE4m3, 8, 0x7f};
      return true;
    case Type::e5m2x2:
    case Type::e5m2x4:
      out = {&scalar::kE5m2, 8, 0x7f};
      return true;
    case Type::e2m3x2:
    case Type::e2m3x4:
      out = {&scalar::kE2m3, 8, 0};
      return true;
    case Type::e3m2x2:
    case Type::e3m2x4:
      out = {&scalar::kE3m2, 8, 0};
      return true;
    case Type::e2m1x2:
    case Type::e2m1x4:
      out = {&scalar::kE2m1, 4, 0};
      return true;
    case Type::ue8m0x2:
      out = {nullptr, 8, 0xff};
      return true;
    default:
      return false;
  }
}

bool select_convert_narrow(Code& code, Type to, Type from, const Words& words) {
  if (words.has(Mod::rs)) return false;
  if (words.has(Mod::pack)) return select_pack(code, to);
  const Round round = words.has(Mod::rz)    ? Round::zero
                      : words.has(Mod::rm)  ? Round::down
                      : words.has(Mod::rp)  ? Round::up
                      : words.has(Mod::rna) ? Round::nearest_away
                                            : Round::nearest_even;
  code.sub = static_cast<uint8_t>(static_cast<unsigned>(round) | (words.has(Mod::satfinite) ? kFinite : 0u) |
                                  (words.has(Mod::relu) ? kRelu : 0u));
  code.list = static_cast<uint32_t>(to);
  code.target = static_cast<uint32_t>(from);
  code.undefined = Undefined::any;
  Element element;
  if (to == Type::tf32 || to == Type::f16 || to == Type::bf16) {
    code.run = convert_finite;
    return from == Type::f32;
  }
  if (!element_of(to, element)) return false;
  if (from == Type::f32) {
    code.run = pack_two;
    return true;
  }
  code.run = convert_two;
  return element_of(from, element);
}

}  // namespace ptxkit::emulator
