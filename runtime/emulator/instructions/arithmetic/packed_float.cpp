// Special forms of single precision: two numbers in a 64-bit register (f32x2), sums and products with half precision
// sources, min and max of three, min and max with .xorsign.abs. PTX ISA 9.0, 9.7.3 and 9.7.5.
#include "runtime/emulator/core/float_math.hpp"
#include "runtime/emulator/core/lanes.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Op;
using ptx::Type;
using scalar::canonical;
using scalar::flush;

// `sub`: rounding in bits 0-1, sat bit 2, nan bit 3, ftz bit 4, abs bit 5, xorsign bit 6.
constexpr unsigned kSat = 4, kNan = 8, kFtz = 16, kAbs = 32, kXorSign = 64;

template <class F>
void with_rounding(const Code& code, F&& f) {
  const HostRounding host(static_cast<Rounding>(code.sub & 3));
  f();
}

template <Math kMath>
float single(float a, float b, float c, unsigned flags) {
  if (flags & kFtz) {
    a = flush(a);
    b = flush(b);
    c = flush(c);
  }
  float r = canonical(compute<float, kMath>(a, b, c, false));
  if (flags & kFtz) r = flush(r);
  return flags & kSat ? scalar::saturate(r) : r;
}

template <Math kMath>
void two_singles(Warp& warp, const Code& code, uint32_t mask) {
  const float* a = at<const float>(warp, code.a);
  const float* b = at<const float>(warp, code.b);
  const float* c = at<const float>(warp, code.c);
  float* d = at<float>(warp, code.dst);
  with_rounding(code, [&] {
    for_lanes(mask, [&](unsigned lane) {
      for (unsigned i = 2 * lane; i < 2 * lane + 2; ++i) d[i] = single<kMath>(a[i], b[i], c[i], code.sub);
    });
  });
}

// a and, for fma, b have half precision; the last source is single.
template <Math kMath, bool kBfloat>
void mixed(Warp& warp, const Code& code, uint32_t mask) {
  auto wide = [](uint16_t bits) { return kBfloat ? scalar::bf16_value(bits) : scalar::f16_value(bits); };
  const uint16_t* a = at<const uint16_t>(warp, code.a);
  const uint16_t* b16 = at<const uint16_t>(warp, code.b);
  const float* b32 = at<const float>(warp, code.b);
  const float* c = at<const float>(warp, code.c);
  float* d = at<float>(warp, code.dst);
  with_rounding(code, [&] {
    for_lanes(mask, [&](unsigned i) {
      d[i] = kMath == Math::fma ? single<kMath>(wide(a[i]), wide(b16[i]), c[i], code.sub)
                                : single<kMath>(wide(a[i]), b32[i], 0, code.sub);
    });
  });
}

// min and max of two or three operands: of their magnitudes with .abs, with the XOR of their signs with .xorsign.
template <bool kMax>
float extremum_of(std::initializer_list<float> values, unsigned flags) {
  float result = 0;
  uint32_t signs = 0;
  bool first = true;
  for (float value : values) {
    if (flags & kFtz) value = flush(value);
    signs ^= scalar::to_bits(value) & 0x80000000u;
    if (flags & kAbs) value = std::fabs(value);
    result = first ? value : extremum<float, kMax>(result, value, flags & kNan);
    first = false;
  }
  result = canonical(result);
  if (result != result || !(flags & kXorSign)) return result;
  return scalar::to_f32(scalar::to_bits(result) | signs);
}

template <bool kMax, bool kThree>
void extremum_handler(Warp& warp, const Code& code, uint32_t mask) {
  const float* a = at<const float>(warp, code.a);
  const float* b = at<const float>(warp, code.b);
  const float* c = at<const float>(warp, code.c);
  float* d = at<float>(warp, code.dst);
  for_lanes(mask, [&](unsigned i) {
    d[i] = kThree ? extremum_of<kMax>({a[i], b[i], c[i]}, code.sub) : extremum_of<kMax>({a[i], b[i]}, code.sub);
  });
}

template <Math kMath>
Handler pick_mixed(Type from) {
  return from == Type::bf16 ? mixed<kMath, true> : mixed<kMath, false>;
}

uint8_t flags_of(const Words& words) {
  return static_cast<uint8_t>(static_cast<unsigned>(rounding_of(words)) | (words.has(Mod::sat) ? kSat : 0u) |
                              (words.has(Mod::NaN) ? kNan : 0u) | (words.has(Mod::ftz) ? kFtz : 0u) |
                              (words.has(Mod::abs) ? kAbs : 0u) | (words.has(Mod::xorsign) ? kXorSign : 0u));
}

}  // namespace

bool select_two_singles(Code& code, Op op, const Words& words) {
  code.sub = flags_of(words);
  switch (op) {
    case Op::add:
      code.run = two_singles<Math::add>;
      return true;
    case Op::sub:
      code.run = two_singles<Math::sub>;
      return true;
    case Op::mul:
      code.run = two_singles<Math::mul>;
      return true;
    case Op::fma:
      code.run = two_singles<Math::fma>;
      return true;
    default:
      return false;
  }
}

bool select_mixed(Code& code, Op op, Type from, const Words& words) {
  if (from != Type::f16 && from != Type::bf16) return false;
  code.sub = flags_of(words);
  switch (op) {
    case Op::add:
      code.run = pick_mixed<Math::add>(from);
      return true;
    case Op::sub:
      code.run = pick_mixed<Math::sub>(from);
      return true;
    case Op::fma:
      code.run = pick_mixed<Math::fma>(from);
      return true;
    default:
      return false;
  }
}

bool select_extremum(Code& code, Op op, bool three, const Words& words) {
  code.sub = flags_of(words);
  if (op == Op::min)
    code.run = three ? extremum_handler<false, true> : extremum_handler<false, false>;
  else
    code.run = three ? extremum_handler<true, true> : extremum_handler<true, false>;
  return true;
}

}  // namespace ptxkit::emulator
