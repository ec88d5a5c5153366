// Single and double precision. PTX ISA 9.0, 9.7.3 and 9.7.4 (half).
//
// Approximations (.approx, .full) are computed in double precision and rounded once. They are closer to the exact value
// than hardware, whose tables differ between architectures; docs/emulator.md gives the distance.
#include <cmath>

#include "runtime/emulator/core/float_math.hpp"
#include "runtime/emulator/core/lanes.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Op;
using ptx::Type;
using scalar::canonical;
using scalar::flush;
using scalar::saturate;

// `sub`: rounding in bits 0-1, sat bit 2, nan bit 3.
template <class T, Math kMath, bool kFlush>
void handler(Warp& warp, const Code& code, uint32_t mask) {
  const T* a = at<const T>(warp, code.a);
  const T* b = at<const T>(warp, code.b);
  const T* c = at<const T>(warp, code.c);
  T* d = at<T>(warp, code.dst);
  const bool sat = code.sub & 4, nan = code.sub & 8;
  auto one = [&](unsigned i) {
    T x = a[i], y = b[i], z = c[i];
    if constexpr (kFlush) {
      x = flush(x);
      y = flush(y);
      z = flush(z);
    }
    T r = compute<T, kMath>(x, y, z, nan);
    if (std::isnan(r)) r = nan_of<kMath>(x, y, z);
    if constexpr (kFlush) r = flush(r);
    if (sat) r = saturate(r);
    d[i] = r;
  };
  auto all = [&] {
    if (mask == kAllLanes)
      for (unsigned i = 0; i < kLanes; ++i) one(i);
    else
      for_lanes(mask, one);
  };
  auto rounding = static_cast<Rounding>(code.sub & 3);
  if (rounding == Rounding::nearest) {
    all();
  } else {
    HostRounding host(rounding);
    all();
  }
}

// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: from the upper half of the source to the upper half of the result.
template <Math kMath>
void approximate_upper_half(Warp& warp, const Code& code, uint32_t mask) {
  const uint64_t* a = at<const uint64_t>(warp, code.a);
  uint64_t* d = at<uint64_t>(warp, code.dst);
  auto upper = [](uint64_t bits) {
    const bool subnormal = (bits & 0x7ff0000000000000u) == 0;
    return bits & (subnormal ? 0x8000000000000000u : 0xffffffff00000000u);
  };
  for_lanes(mask, [&](unsigned i) {
    const double r = compute<double, kMath>(scalar::to_f64(upper(a[i])), 0, 0, false);
    d[i] = r == r ? upper(scalar::to_bits(r)) : 0x7fffffff00000000u;
  });
}

// div.approx is a * (1 / b), where the reciprocal of a number above 2^126 is flushed.
template <bool kFlush>
void quotient(Warp& warp, const Code& code, uint32_t mask) {
  const float* a = at<const float>(warp, code.a);
  const float* b = at<const float>(warp, code.b);
  float* d = at<float>(warp, code.dst);
  for_lanes(mask, [&](unsigned i) {
    const float x = kFlush ? flush(a[i]) : a[i], y = kFlush ? flush(b[i]) : b[i];
    float r = x / y;
    if (std::isfinite(y) && std::fabs(y) > 0x1p126F && x == x) r = std::isinf(x) ? NAN : std::copysign(0.0F, r);
    d[i] = canonical(kFlush ? flush(r) : r);
  });
}

template <Math kMath>
Handler pick(Type type, bool ftz) {
  if (type == Type::f64) {
    if constexpr (kMath == Math::rcp || kMath == Math::rsqrt)
      if (ftz) return approximate_upper_half<kMath>;
    return ftz ? nullptr : Handler{handler<double, kMath, false>};
  }
  return ftz ? handler<float, kMath, true> : handler<float, kMath, false>;
}

// testp
enum class Property : uint8_t { finite, infinite, number, not_a_number, normal, subnormal };
template <class T>
void test_property(Warp& warp, const Code& code, uint32_t mask) {
  const T* a = at<const T>(warp, code.a);
  uint32_t bits = 0;
  for_lanes(mask, [&](unsigned i) {
    int category = std::fpclassify(a[i]);
    bool holds = false;
    switch (static_cast<Property>(code.source_bytes)) {
      case Property::finite:
        holds = category != FP_NAN && category != FP_INFINITE;
        break;
      case Property::infinite:
        holds = category == FP_INFINITE;
        break;
      case Property::number:
        holds = category != FP_NAN;
        break;
      case Property::not_a_number:
        holds = category == FP_NAN;
        break;
      case Property::normal:
        holds = category == FP_NORMAL || category == FP_ZERO;
        break;
      case Property::subnormal:
        holds = category == FP_SUBNORMAL;
        break;
    }
    bits |= uint32_t{holds} << i;
  });
  uint32_t* d = at<uint32_t>(warp, code.dst);
  *d = (*d & ~mask) | bits;
}

}  // namespace

bool select_float(Code& code, Op op, Type type, const Words& words) {
  if (type != Type::f32 && type != Type::f64) return false;
  const bool ftz = words.has(Mod::ftz);
  code.sub = static_cast<uint8_t>(static_cast<unsigned>(rounding_of(words)) | (words.has(Mod::sat) ? 4u : 0u) |
                                  (words.has(Mod::NaN) ? 8u : 0u));
  switch (op) {
    case Op::add:
      code.run = pick<Math::add>(type, ftz);
      break;
    case Op::sub:
      code.run = pick<Math::sub>(type, ftz);
      break;
    case Op::mul:
      code.run = pick<Math::mul>(type, ftz);
      break;
    case Op::mad:
    case Op::fma:
      code.run = pick<Math::fma>(type, ftz);
      break;
    case Op::div:
      code.run = !words.has(Mod::approx) ? pick<Math::div>(type, ftz) : ftz ? quotient<true> : quotient<false>;
      break;
    case Op::sqrt:
      code.run = pick<Math::sqrt>(type, ftz);
      break;
    case Op::rcp:
      code.run = pick<Math::rcp>(type, ftz);
      break;
    case Op::min:
      code.run = pick<Math::min>(type, ftz);
      break;
    case Op::max:
      code.run = pick<Math::max>(type, ftz);
      break;
    case Op::rsqrt:
      code.run = pick<Math::rsqrt>(type, ftz);
      break;
    case Op::sin:
      code.run = pick<Math::sin>(type, ftz);
      break;
    case Op::cos:
      code.run = pick<Math::cos>(type, ftz);
      break;
    case Op::lg2:
      code.run = pick<Math::lg2>(type, ftz);
      break;
    case Op::ex2:
      code.run = pick<Math::ex2>(type, ftz);
      break;
    case Op::tanh:
      code.run = pick<Math::tanh>(type, ftz);
      break;
    case Op::neg:  // a NaN is handled as in a sum with zero: the sign stays
      code.run = pick<Math::neg>(type, ftz);
      break;
    case Op::abs:
      code.run = pick<Math::abs>(type, ftz);
      break;
    case Op::copysign:  // the magnitude of b with the sign of a
      if (type == Type::f64)
        code.run = lanes<[](uint64_t a, uint64_t b) { return (a & (uint64_t{1} << 63)) | (b & ~(uint64_t{1} << 63)); },
                         uint64_t, uint64_t, uint64_t>;
      else
        code.run = lanes<[](uint32_t a, uint32_t b) { return (a & 0x80000000u) | (b & 0x7fffffffu); }, uint32_t,
                         uint32_t, uint32_t>;
      break;
    case Op::testp: {
      Property property = words.has(Mod::finite)       ? Property::finite
                          : words.has(Mod::infinite)   ? Property::infinite
                          : words.has(Mod::number)     ? Property::number
                          : words.has(Mod::notanumber) ? Property::not_a_number
                          : words.has(Mod::normal)     ? Property::normal
                                                       : Property::subnormal;
      code.source_bytes = static_cast<uint8_t>(property);
      code.sub = 0;
      code.undefined = Undefined::compare;
      code.element_bytes = 0;
      code.run = type == Type::f64 ? test_property<double> : test_property<float>;
      break;
    }
    default:
      return false;
  }
  return code.run != nullptr;
}

namespace {

// kOutOfBounds is the NaN that fills out-of-bounds elements of tensor copies on an H200. As a factor, with either sign,
// it makes fma.oob 0.
struct Half {
  static double value(uint16_t bits) { return scalar::f16_value(bits); }
  static uint16_t bits(double value) { return scalar::f16_bits(value); }
  static constexpr uint16_t kExponent = 0x7c00, kOutOfBounds = 0x7ff7;
};
struct Bfloat {
  static double value(uint16_t bits) { return scalar::bf16_value(bits); }
  static uint16_t bits(double value) { return scalar::bf16_bits(value); }
  static constexpr uint16_t kExponent = 0x7f80, kOutOfBounds = 0x7ff7;
};

// In double precision, sums and products of halves are exact or differ only in bits that rounding ignores. The
// exception is fma of bfloats with exponents far apart, whose sum is therefore rounded to odd first.
inline double fma_to_odd(double a, double b, double c) {
  double product = a * b;  // exact: at most 22 bits
  double sum = product + c;
  if (!std::isfinite(sum)) return sum;
  double error = (std::fabs(product) >= std::fabs(c)) ? (product - sum) + c : (c - sum) + product;
  if (error == 0 || (std::bit_cast<uint64_t>(sum) & 1)) return sum;
  bool outwards = (error > 0) == (sum > 0);
  return std::bit_cast<double>(std::bit_cast<uint64_t>(sum) + (outwards ? 1 : uint64_t(-1)));
}

template <class F, Math kMath>
inline uint16_t half_one(uint16_t a, uint16_t b, uint16_t c, unsigned flags) {
  if ((flags & 32) && ((a & 0x7fff) == F::kOutOfBounds || (b & 0x7fff) == F::kOutOfBounds)) return 0;
  auto in = [&](uint16_t bits) {
    if ((flags & 2) && (bits & F::kExponent) == 0) bits = static_cast<uint16_t>(bits & 0x8000);
    return F::value(bits);
  };
  double x = in(a), y = in(b), z = in(c), r;
  const bool xorsign = flags & 16;  // .xorsign.abs: of the magnitudes, with the XOR of the signs
  const bool negative = xorsign && std::signbit(x) != std::signbit(y);
  if (xorsign) {
    x = std::fabs(x);
    y = std::fabs(y);
  }
  if constexpr (kMath == Math::fma)
    r = fma_to_odd(x, y, z);
  else if constexpr (kMath == Math::min)
    r = extremum<double, false>(x, y, flags & 8);
  else if constexpr (kMath == Math::max)
    r = extremum<double, true>(x, y, flags & 8);
  else
    r = compute<double, kMath>(x, y, z, flags & 8);
  if (negative && r == r) r = -r;
  if (flags & 1) r = saturate(r);
  if ((flags & 4) && !(r > 0)) r = r != r ? r : 0.0;  // relu keeps NaN
  uint16_t bits = F::bits(r);
  if ((flags & 2) && (bits & F::kExponent) == 0) bits = static_cast<uint16_t>(bits & 0x8000);
  return bits;
}

template <class F, Math kMath, bool kTwo>
void half_handler(Warp& warp, const Code& code, uint32_t mask) {
  if constexpr (kTwo) {
    const uint32_t* a = at<const uint32_t>(warp, code.a);
    const uint32_t* b = at<const uint32_t>(warp, code.b);
    const uint32_t* c = at<const uint32_t>(warp, code.c);
    uint32_t* d = at<uint32_t>(warp, code.dst);
    for_lanes(mask, [&](unsigned i) {
      auto low = half_one<F, kMath>(static_cast<uint16_t>(a[i]), static_cast<uint16_t>(b[i]),
                                    static_cast<uint16_t>(c[i]), code.sub);
      auto high = half_one<F, kMath>(static_cast<uint16_t>(a[i] >> 16), static_cast<uint16_t>(b[i] >> 16),
                                     static_cast<uint16_t>(c[i] >> 16), code.sub);
      d[i] = uint32_t{low} | uint32_t{high} << 16;
    });
  } else {
    const uint16_t* a = at<const uint16_t>(warp, code.a);
    const uint16_t* b = at<const uint16_t>(warp, code.b);
    const uint16_t* c = at<const uint16_t>(warp, code.c);
    uint16_t* d = at<uint16_t>(warp, code.dst);
    for_lanes(mask, [&](unsigned i) { d[i] = half_one<F, kMath>(a[i], b[i], c[i], code.sub); });
  }
}

template <class F, bool kTwo>
Handler pick_half(Op op) {
  switch (op) {
    case Op::add:
      return half_handler<F, Math::add, kTwo>;
    case Op::sub:
      return half_handler<F, Math::sub, kTwo>;
    case Op::mul:
      return half_handler<F, Math::mul, kTwo>;
    case Op::fma:
      return half_handler<F, Math::fma, kTwo>;
    case Op::neg:
      return half_handler<F, Math::neg, kTwo>;
    case Op::abs:
      return half_handler<F, Math::abs, kTwo>;
    case Op::min:
      return half_handler<F, Math::min, kTwo>;
    case Op::max:
      return half_handler<F, Math::max, kTwo>;
    case Op::ex2:
      return half_handler<F, Math::ex2, kTwo>;
    case Op::tanh:
      return half_handler<F, Math::tanh, kTwo>;
    default:
      return nullptr;
  }
}

}  // namespace

bool select_half(Code& code, Op op, Type type, const Words& words) {
  code.sub = static_cast<uint8_t>((words.has(Mod::sat) ? 1u : 0u) | (words.has(Mod::ftz) ? 2u : 0u) |
                                  (words.has(Mod::relu) ? 4u : 0u) | (words.has(Mod::NaN) ? 8u : 0u) |
                                  (words.has(Mod::xorsign) ? 16u : 0u) | (words.has(Mod::oob) ? 32u : 0u));
  switch (type) {
    case Type::f16:
      code.run = pick_half<Half, false>(op);
      break;
    case Type::f16x2:
      code.run = pick_half<Half, true>(op);
      break;
    case Type::bf16:
      code.run = pick_half<Bfloat, false>(op);
      break;
    case Type::bf16x2:
      code.run = pick_half<Bfloat, true>(op);
      break;
    default:
      return false;
  }
  return code.run != nullptr;
}

}  // namespace ptxkit::emulator
