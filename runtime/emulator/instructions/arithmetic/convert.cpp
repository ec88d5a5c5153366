// cvt. PTX ISA 9.0, 9.7.9.21: every pair of integer and floating point types, rounding, saturation; narrow formats.
//
// The common pairs (registers exactly as wide as the types) are vector loops. The others go lane by lane through a wide
// intermediate: 64 bits for integers, double for floating point, both exact.
#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/core/lanes.hpp"
#include "runtime/emulator/core/scalar.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Type;
using ptx::TypeKind;
using scalar::Round;

// `sub`: rounding in bits 0-2 (scalar::Round), sat bit 3, ftz bit 4, rounding to an integral value bit 5, relu bit 6.
constexpr unsigned kSat = 8, kFtz = 16, kIntegral = 32, kRelu = 64;

uint64_t read(const uint8_t* slot, unsigned lane, unsigned register_bytes) {
  uint64_t value = 0;
  std::memcpy(&value, slot + size_t{lane} * register_bytes, register_bytes);
  return value;
}
void write(uint8_t* slot, unsigned lane, unsigned register_bytes, uint64_t value) {
  std::memcpy(slot + size_t{lane} * register_bytes, &value, register_bytes);
}

bool is_float(Type type) { return ptx::kind(type) == TypeKind::floating; }
bool is_signed(Type type) { return ptx::kind(type) == TypeKind::signed_int; }

uint64_t low_bits(uint64_t value, unsigned width) { return width >= 64 ? value : value & ((uint64_t{1} << width) - 1); }
int64_t sign_extend(uint64_t value, unsigned width) {
  return width >= 64 ? static_cast<int64_t>(value) : static_cast<int64_t>(value << (64 - width)) >> (64 - width);
}

double integral(double value, Round round) {
  switch (round) {
    case Round::nearest_even:
      return std::nearbyint(value);
    case Round::nearest_away:
      return std::round(value);
    case Round::zero:
      return std::trunc(value);
    case Round::down:
      return std::floor(value);
    case Round::up:
      return std::ceil(value);
  }
  return value;
}

// The host's conversions keep a NaN's sign and payload and make it quiet, as the GPU's do.
double read_float(uint64_t bits, Type type) {
  switch (type) {
    case Type::f16:
      return scalar::f16_value(static_cast<uint16_t>(bits));
    case Type::bf16:
      return scalar::bf16_value(static_cast<uint16_t>(bits));
    case Type::f32:
      return scalar::to_f32(static_cast<uint32_t>(bits));
    default:
      return scalar::to_f64(bits);
  }
}

// Rounds a double once to single precision with any rounding.
uint32_t to_single(double value, Round round) {
  if (value != value) return 0x7fffffffu;
  static constexpr scalar::Format kF32{8, 23};
  return scalar::narrow(value, kF32, round, false);
}

uint64_t write_float(double value, Type type, Round round) {
  switch (type) {
    case Type::f16:
      return value != value ? 0x7fff : scalar::narrow(value, scalar::kF16, round, false);
    case Type::bf16:
      return value != value ? 0x7fff : scalar::narrow(value, scalar::kBf16, round, false);
    case Type::f32:
      return to_single(value, round);
    case Type::tf32:
      return value != value ? 0x7fffe000 : uint64_t{scalar::narrow(value, scalar::kTf32, round, false)} << 13;
    default:
      return scalar::to_bits(value);
  }
}

// Rounds an integer to the precision of the target. Rounding to 53 bits first would round twice for narrower formats.
uint64_t integer_to_float(uint64_t magnitude, bool negative, Type type, Round round) {
  if (magnitude == 0) return 0;
  const int precision = type == Type::f64 ? 53 : type == Type::f32 ? 24 : type == Type::f16 ? 11 : 8;
  int width = 64 - std::countl_zero(magnitude);
  int extra = width - precision;
  double value;
  if (extra <= 0) {
    value = static_cast<double>(magnitude);
  } else {
    uint64_t kept = magnitude >> extra, rest = magnitude & ((uint64_t{1} << extra) - 1),
             half = uint64_t{1} << (extra - 1);
    bool away = false;
    switch (round) {
      case Round::nearest_even:
        away = rest > half || (rest == half && (kept & 1));
        break;
      case Round::nearest_away:
        away = rest >= half;
        break;
      case Round::zero:
        break;
      case Round::down:
        away = rest && negative;
        break;
      case Round::up:
        away = rest && !negative;
        break;
    }
    value = std::ldexp(static_cast<double>(kept + away), extra);
  }
  return write_float(negative ? -value : value, type, round);
}

uint64_t float_to_integer(double value, Type from, Type to, Round round) {
  const unsigned width = ptx::bit_width(to);
  if (value != value) return from != Type::f64 && width < 64 ? 0 : uint64_t{1} << (width - 1);
  double whole = integral(value, round);
  if (is_signed(to)) {
    double limit = std::ldexp(1.0, static_cast<int>(width) - 1);
    if (whole >= limit) return (uint64_t{1} << (width - 1)) - 1;
    if (whole < -limit) return static_cast<uint64_t>(sign_extend(uint64_t{1} << (width - 1), width));
    return static_cast<uint64_t>(static_cast<int64_t>(whole));
  }
  if (whole <= 0) return 0;
  if (whole >= std::ldexp(1.0, static_cast<int>(width))) return low_bits(~uint64_t{0}, width);
  return static_cast<uint64_t>(whole);
}

double flush_for(double value, Type type) {
  return type == Type::f32 ? static_cast<double>(scalar::flush(static_cast<float>(value))) : value;
}

bool is_nan(uint64_t bits, Type type) {
  const double value = read_float(bits, type);
  return value != value;
}

// The conversion of a NaN. To and from double precision it keeps what fits; bf16 is the upper half of single precision.
// Every other conversion, and any with .ftz or .sat, gives the format's single NaN, or none.
uint64_t convert_nan(uint64_t bits, Type to, Type from, unsigned flags) {
  if (flags & kSat) return 0;
  const bool plain = !(flags & (kFtz | kRelu));
  if (to == Type::f64) {
    if (from == Type::f64) return flags & kIntegral ? scalar::to_bits(scalar::quiet(scalar::to_f64(bits))) : bits;
    if (!plain) return scalar::to_bits(scalar::widen_nan(0x7fffffff, 8, 23));
    return scalar::to_bits(from == Type::f16    ? scalar::widen_nan(static_cast<uint32_t>(bits), 5, 10)
                           : from == Type::bf16 ? scalar::widen_nan(static_cast<uint32_t>(bits), 8, 7)
                                                : scalar::widen_nan(static_cast<uint32_t>(bits), 8, 23));
  }
  if (from == Type::f64) {
    const double value = scalar::to_f64(bits);
    return to == Type::f16    ? scalar::narrow_nan(value, 5, 10)
           : to == Type::bf16 ? scalar::narrow_nan(value, 8, 7)
                              : scalar::narrow_nan(value, 8, 23);
  }
  if (to == Type::f32 && from == Type::bf16 && plain) return bits << 16;
  // .rna to tf32 only truncates a NaN.
  if (to == Type::tf32 && static_cast<Round>(flags & 7) == Round::nearest_away) return bits & 0xffffe000u;
  return write_float(NAN, to, Round::nearest_even);
}

uint64_t convert_one(uint64_t bits, Type to, Type from, unsigned flags) {
  const auto round = static_cast<Round>(flags & 7);
  const unsigned to_width = ptx::bit_width(to), from_width = ptx::bit_width(from);
  if (!is_float(from)) {
    uint64_t raw = low_bits(bits, from_width);
    int64_t value = is_signed(from) ? sign_extend(raw, from_width) : static_cast<int64_t>(raw);
    bool negative = is_signed(from) && value < 0;
    if (is_float(to)) {
      uint64_t magnitude = negative ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
      uint64_t out = integer_to_float(magnitude, negative, to, round);
      return flags & kSat ? write_float(scalar::saturate(read_float(out, to)), to, round) : out;
    }
    if (flags & kSat) {
      if (is_signed(to)) {
        int64_t top = static_cast<int64_t>((uint64_t{1} << (to_width - 1)) - 1);
        if (!is_signed(from)) {
          if (raw > static_cast<uint64_t>(top)) value = top;
        } else {
          value = value > top ? top : value < -top - 1 ? -top - 1 : value;
        }
      } else {
        uint64_t top = low_bits(~uint64_t{0}, to_width);
        if (negative)
          value = 0;
        else if (static_cast<uint64_t>(value) > top)
          value = static_cast<int64_t>(top);
      }
    }
    uint64_t out = low_bits(static_cast<uint64_t>(value), to_width);
    return is_signed(to) ? static_cast<uint64_t>(sign_extend(out, to_width)) : out;
  }
  if (is_float(to) && is_nan(low_bits(bits, from_width), from))
    return convert_nan(low_bits(bits, from_width), to, from, flags);
  double value = read_float(low_bits(bits, from_width), from);
  if (flags & kFtz) value = flush_for(value, from);
  if (!is_float(to)) return float_to_integer(value, from, to, round);
  if (flags & kIntegral) value = integral(value, round);
  if (flags & kSat) value = scalar::saturate(value);
  if ((flags & kRelu) && !(value > 0) && value == value) value = 0;
  uint64_t out = write_float(value, to, flags & kIntegral ? Round::nearest_even : round);
  if ((flags & kFtz) && to == Type::f32)
    out = scalar::to_bits(scalar::flush(scalar::to_f32(static_cast<uint32_t>(out))));
  return out;
}

// The types are in `list` (to) and `target` (from).
void general(Warp& warp, const Code& code, uint32_t mask) {
  const uint8_t* a = at<const uint8_t>(warp, code.a);
  uint8_t* d = at<uint8_t>(warp, code.dst);
  const auto to = static_cast<Type>(code.list), from = static_cast<Type>(code.target);
  for_lanes(mask, [&](unsigned i) {
    write(d, i, code.register_bytes, convert_one(read(a, i, code.source_bytes), to, from, code.sub));
  });
}

template <class D, class S>
Handler extend() {
  return lanes<[](S a) { return static_cast<D>(a); }, D, S>;
}

// Plain integer conversions between registers as wide as the types.
Handler pick_integer(Type to, Type from) {
  const unsigned d = ptx::bit_width(to), s = ptx::bit_width(from);
  const bool sign = is_signed(from);
  if (d == s)
    return d == 16   ? extend<uint16_t, uint16_t>()
           : d == 32 ? extend<uint32_t, uint32_t>()
                     : extend<uint64_t, uint64_t>();
  if (d == 16) return s == 32 ? extend<uint16_t, uint32_t>() : extend<uint16_t, uint64_t>();
  if (d == 32 && s == 16) return sign ? extend<uint32_t, int16_t>() : extend<uint32_t, uint16_t>();
  if (d == 32) return extend<uint32_t, uint64_t>();
  if (s == 16) return sign ? extend<uint64_t, int16_t>() : extend<uint64_t, uint16_t>();
  return sign ? extend<uint64_t, int32_t>() : extend<uint64_t, uint32_t>();
}

}  // namespace

bool select_convert(Code& code, Type to, Type from, const Words& words) {
  Round round = Round::nearest_even;
  if (words.has(Mod::rz) || words.has(Mod::rzi)) round = Round::zero;
  if (words.has(Mod::rm) || words.has(Mod::rmi)) round = Round::down;
  if (words.has(Mod::rp) || words.has(Mod::rpi)) round = Round::up;
  if (words.has(Mod::rna)) round = Round::nearest_away;
  auto packed = [](Type type) {
    const ptx::TypeKind kind = ptx::kind(type);
    return kind == TypeKind::packed || type == Type::f16x2 || type == Type::bf16x2;
  };
  if (words.has(Mod::pack) || words.has(Mod::satfinite) || words.has(Mod::rs) || packed(to) || packed(from))
    return select_convert_narrow(code, to, from, words);
  const bool integral_result = words.has(Mod::rni) || words.has(Mod::rzi) || words.has(Mod::rmi) || words.has(Mod::rpi);
  code.sub = static_cast<uint8_t>(static_cast<unsigned>(round) | (words.has(Mod::sat) ? kSat : 0u) |
                                  (words.has(Mod::ftz) ? kFtz : 0u) | (integral_result ? kIntegral : 0u) |
                                  (words.has(Mod::relu) ? kRelu : 0u));
  code.list = static_cast<uint32_t>(to);
  code.target = static_cast<uint32_t>(from);
  auto known = [](Type type) {
    switch (type) {
      case Type::u8:
      case Type::s8:
      case Type::u16:
      case Type::s16:
      case Type::u32:
      case Type::s32:
      case Type::u64:
      case Type::s64:
      case Type::f16:
      case Type::bf16:
      case Type::f32:
      case Type::f64:
        return true;
      default:
        return false;
    }
  };
  if (!(known(to) || to == Type::tf32) || !known(from)) return false;
  code.run = general;
  code.is_signed = is_signed(from);
  if (is_float(to) || is_float(from)) {
    code.undefined = Undefined::any;
    if (to == Type::f64 && from == Type::f32 && code.sub == 0)
      code.run = lanes<[](float a) { return double{a}; }, double, float>;
    if (to == Type::f32 && from == Type::s32 && code.sub == 0)
      code.run = lanes<[](int32_t a) { return static_cast<float>(a); }, float, int32_t>;
    if (to == Type::f32 && from == Type::u32 && code.sub == 0)
      code.run = lanes<[](uint32_t a) { return static_cast<float>(a); }, float, uint32_t>;
    return true;
  }
  code.undefined = words.has(Mod::sat) ? Undefined::any : Undefined::convert;
  if (!words.has(Mod::sat) && code.register_bytes * 8u == ptx::bit_width(to) &&
      code.source_bytes * 8u == ptx::bit_width(from))
    code.run = pick_integer(to, from);
  return true;
}

}  // namespace ptxkit::emulator
