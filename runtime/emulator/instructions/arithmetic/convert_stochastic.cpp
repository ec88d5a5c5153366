// cvt.rs: rounding by random bits that the program supplies. PTX ISA 9.0, 9.7.9.21.
//
// The truncated bits of the mantissa and the random bits are added; a carry rounds away from zero. If more bits are
// truncated than random bits are given, the upper ones are used. The ISA shows this in figures only, and sm_90 does not
// have the instruction.
#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/core/narrow_element.hpp"
#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Type;
using scalar::Format;
using scalar::Round;

struct Target {
  Element element;
  unsigned count = 4, random_bits = 16;
};

bool target_of(Type type, Target& out) {
  switch (type) {
    case Type::f16x2:
      out = {{}, 2, 13};
      break;
    case Type::bf16x2:
      out = {{}, 2, 16};
      break;
    case Type::e4m3x4:
    case Type::e5m2x4:
    case Type::e2m3x4:
    case Type::e3m2x4:
    case Type::e2m1x4:
      out = {};
      break;
    default:
      return false;
  }
  return element_of(type, out.element);
}

// The random bits of source `i`; source 0 is that of the highest element.
uint32_t random_of(const Target& to, uint32_t word, unsigned i) {
  const bool upper = i < to.count / 2;
  if (to.element.bits == 4) {
    const unsigned shift = upper ? 8 : 0;  // one byte of each half
    return (word >> (16 + shift) & 0xff) << 8 | (word >> shift & 0xff);
  }
  return (upper ? word >> 16 : word) & ((1u << to.random_bits) - 1);
}

uint32_t rounded(double value, const Target& to, uint32_t random, bool finite, bool relu) {
  const Format& format = *to.element.format;
  if (value != value && to.element.not_a_number) return to.element.not_a_number;
  if (relu && value == value && !(value > 0)) value = 0;
  const double size = std::fabs(value);
  const uint32_t sign =
      scalar::narrow(value, format, Round::zero, true) & 1u << (format.exponent_bits + format.mantissa_bits);
  if (!std::isfinite(size)) return scalar::narrow(value, format, Round::zero, finite);
  const uint32_t below = scalar::narrow(size, format, Round::zero, true);
  const double low = scalar::widen(below, format);
  const double most = scalar::widen(scalar::narrow(INFINITY, format, Round::zero, true), format);
  const double high = low < most ? scalar::widen(below + 1, format) : 2 * low - scalar::widen(below - 1, format);
  if (size >= high) return sign | scalar::narrow(INFINITY, format, Round::zero, finite);
  const auto cut = static_cast<uint32_t>(std::ldexp((size - low) / (high - low), static_cast<int>(to.random_bits)));
  const bool carry = (cut + random) >> to.random_bits != 0;
  return sign | (carry && (low < most || !finite) ? below + 1 : below);
}

// Sources in ProgramImage::refs, highest element first; `sub`: satfinite 1, relu 2.
void convert(Warp& warp, const Code& code, uint32_t mask) {
  Target to;
  target_of(static_cast<Type>(code.target), to);
  const Ref* sources = warp.cta->launch->image->refs.data() + code.list;
  const uint32_t* random = at<const uint32_t>(warp, code.d);
  uint8_t* d = at<uint8_t>(warp, code.dst);
  uint32_t undefined = 0;
  const bool checked = warp.undefined[0] != nullptr;
  for_lanes(mask, [&](unsigned lane) {
    uint32_t out = 0;
    for (unsigned i = 0; i < to.count; ++i)
      out = out << to.element.bits | rounded(static_cast<double>(at<const float>(warp, sources[i])[lane]), to,
                                             random_of(to, random[lane], i), code.sub & 1, code.sub & 2);
    std::memcpy(d + size_t{lane} * code.register_bytes, &out, code.register_bytes);
  });
  if (!checked) return;
  uint32_t origin = 0;
  for (unsigned i = 0; i <= to.count; ++i) {
    const Ref ref = i < to.count ? sources[i] : code.d;
    if (undefined_lanes(warp, ref) & mask) origin = origin_of(warp, ref);
    undefined |= undefined_lanes(warp, ref) & mask;
  }
  undefined_lanes(warp, code.dst) = (undefined_lanes(warp, code.dst) & ~mask) | undefined;
  if (!undefined) return;
  origin_of(warp, code.dst) = origin;
  for_lanes(undefined, [&](unsigned lane) {
    std::memset(shadow_at<uint8_t>(warp, code.dst) + size_t{lane} * code.register_bytes, 0xff, code.register_bytes);
  });
}

}  // namespace

bool select_convert_stochastic(Code& code, Type to, const Words& words) {
  Target target;
  if (!target_of(to, target) || code.count != target.count ||
      code.register_bytes * 8u != target.element.bits * target.count)
    return false;
  code.sub = static_cast<uint8_t>((words.has(Mod::satfinite) ? 1 : 0) | (words.has(Mod::relu) ? 2 : 0));
  code.target = static_cast<uint32_t>(to);
  code.undefined = Undefined::handler;
  code.run = convert;
  return true;
}

}  // namespace ptxkit::emulator
