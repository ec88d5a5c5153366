// Video instructions, packed and mixed floating point, narrow formats, atomics on vectors, 32-bit addresses: each form
// is compared with values computed here independently, from the text of the PTX ISA.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/emulator.hpp"
#include "support/half.hpp"

namespace ptxkit::emulator {
namespace {

using u32 = uint32_t;
using s32 = int32_t;
using s64 = int64_t;

struct Case {
  std::string_view text;  // d in %r4; a, b, c in %r1, %r2, %r3 and %f1, %f2, %f3, their halves in %rs2..%rs7
  std::function<u32(u32, u32, u32)> expected;
};

const std::vector<u32>& words() {
  static const std::vector<u32> values{0,          1,          0x80,       0xff,       0x7fff,     0x8000,
                                       0xffff,     0x01020304, 0x7f80ff01, 0x80ff7f00, 0x7fffffff, 0x80000000,
                                       0xffffffff, 0x12345678, 0xfedcba98, 0xffff0001};
  return values;
}
// Interesting halves and singles: signed zeros, subnormal, small, large, infinite, NaN.
const std::vector<u32>& halves() {
  static const std::vector<u32> values{0x3c003c00, 0x80000000, 0x00010002, 0xbc004000, 0x7bff7bff, 0xfc007c00,
                                       0x7fff3c00, 0x04000400, 0x35553555, 0xc500c580, 0x2c661419, 0x90019999};
  return values;
}
const std::vector<u32>& singles() {
  static const std::vector<u32> values{0,          0x80000000, 0x3f800000, 0xbf800000, 0x40490fdb,
                                       0x7f7fffff, 0x7f800000, 0xff800000, 0x7fffffff, 0x00000001,
                                       0x80400000, 0x33800001, 0x3eaaaaab, 0xc2480000, 0x43e00000,
                                       0x43e80000, 0x47600000, 0x3f000000, 0x3d000000, 0x40c80000};
  return values;
}

void expect(const std::vector<Case>& cases, const std::vector<u32>& values, std::string target = "sm_90") {
  const size_t n = values.size(), count = n * n;
  std::vector<u32> in(3 * count);
  for (size_t i = 0; i < count; ++i) {
    in[i] = values[i % n];
    in[count + i] = values[i / n];
    in[2 * count + i] = values[(i * 5 + i / n * 3) % n];
  }
  const size_t rounds = (count + 31) / 32;
  in.resize(3 * count + 32);
  for (const Case& each : cases) {
    std::vector<u32> got;
    for (size_t round = 0; round < rounds; ++round) {
      std::vector<u32> slice;
      for (size_t k = 0; k < 3; ++k)
        for (size_t i = 0; i < 32; ++i) slice.push_back(in[std::min(k * count + round * 32 + i, in.size() - 1)]);
      std::string text = entry_text(
          "  ld.global.u32 %r1, [%rd3];\n  ld.global.u32 %r2, [%rd3+128];\n  ld.global.u32 %r3, [%rd3+256];\n"
          "  mov.b32 %f1, %r1;\n  mov.b32 %f2, %r2;\n  mov.b32 %f3, %r3;\n"
          "  mov.b32 {%rs2, %rs3}, %r1;\n  mov.b32 {%rs4, %rs5}, %r2;\n  mov.b32 {%rs6, %rs7}, %r3;\n" +
          std::string(each.text) + "\n  st.global.u32 [%rd2], %r4;\n");
      if (target != "sm_90") text = for_target(text, target);
      const Ran ran = run_kernel(text, {.block = {32}}, 32, slice);
      ASSERT_TRUE(ran.outcome.ok()) << each.text << "\n" << render(ran.outcome, "test.ptx");
      got.insert(got.end(), ran.out.begin(), ran.out.end());
    }
    for (size_t i = 0; i < count; ++i)
      ASSERT_EQ(got[i], each.expected(in[i], in[count + i], in[2 * count + i]))
          << std::hex << each.text << " a=" << in[i] << " b=" << in[count + i] << " c=" << in[2 * count + i];
  }
}

s64 byte(u32 word, unsigned at) { return word >> 8 * at & 0xff; }
s64 sbyte(u32 word, unsigned at) { return static_cast<int8_t>(word >> 8 * at); }
s64 half(u32 word, unsigned at) { return word >> 16 * at & 0xffff; }
s64 shalf(u32 word, unsigned at) { return static_cast<int16_t>(word >> 16 * at); }
s64 clamp(s64 value, s64 low, s64 high) { return std::min(std::max(value, low), high); }
u32 word(s64 value) { return static_cast<u32>(value); }

TEST(Packed, ScalarVideo) {
  expect(
      {
          {"vadd.u32.u32.u32 %r4, %r1.b1, %r2.h1;", [](u32 a, u32 b, u32) { return word(byte(a, 1) + half(b, 1)); }},
          {"vadd.s32.s32.s32.sat %r4, %r1, %r2;",
           [](u32 a, u32 b, u32) { return word(clamp(s64{s32(a)} + s32(b), INT32_MIN, INT32_MAX)); }},
          {"vadd.u32.s32.s32.sat %r4, %r1, %r2;",
           [](u32 a, u32 b, u32) { return word(clamp(s64{s32(a)} + s32(b), 0, UINT32_MAX)); }},
          {"vsub.s32.s32.u32.add %r4, %r1.b3, %r2.b0, %r3;",
           [](u32 a, u32 b, u32 c) { return word(sbyte(a, 3) - byte(b, 0)) + c; }},
          {"vsub.s32.s32.s32.max %r4, %r1.h0, %r2.h1, %r3;",
           [](u32 a, u32 b, u32 c) { return word(std::max<s64>(shalf(a, 0) - shalf(b, 1), s32(c))); }},
          {"vabsdiff.u32.u32.u32.min %r4, %r1, %r2, %r3;",
           [](u32 a, u32 b, u32 c) { return std::min(a > b ? a - b : b - a, c); }},
          {"vmin.s32.s32.u32 %r4, %r1, %r2.b2;",
           [](u32 a, u32 b, u32) { return word(std::min(s64{s32(a)}, byte(b, 2))); }},
          {"vmax.u32.u32.u32.sat %r4.b2, %r1, %r2, %r3;",
           [](u32 a, u32 b, u32 c) { return (c & 0xff00ffff) | std::min(std::max(a, b), 255u) << 16; }},
          {"vadd.s32.s32.s32.sat %r4.h1, %r1, %r2, %r3;",
           [](u32 a, u32 b, u32 c) { return (c & 0xffff) | word(clamp(s64{s32(a)} + s32(b), -32768, 32767)) << 16; }},
          {"vshl.u32.u32.u32.clamp %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return b > 31 ? 0 : a << b; }},
          {"vshl.u32.u32.u32.wrap %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return a << (b & 31); }},
          {"vshr.s32.s32.u32.clamp %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return word(s32(a) >> std::min(b, 31u)); }},
          {"vshr.u32.u32.u32.wrap.add %r4, %r1.h1, %r2, %r3;",
           [](u32 a, u32 b, u32 c) { return word(half(a, 1) >> (b & 31)) + c; }},
          {"vmad.s32.s32.s32.shr7 %r4, %r1.h0, %r2.h1, %r3;",
           [](u32 a, u32 b, u32 c) { return word((shalf(a, 0) * shalf(b, 1) + s32(c)) >> 7); }},
          {"vmad.u32.u32.u32.po %r4, %r1.b0, %r2.b1, %r3;",
           [](u32 a, u32 b, u32 c) { return word(byte(a, 0) * byte(b, 1)) + c + 1; }},
          {"vmad.s32.s32.s32 %r4, -%r1.h0, %r2.h1, %r3;",
           [](u32 a, u32 b, u32 c) { return word(s32(c) - shalf(a, 0) * shalf(b, 1)); }},
          {"vmad.s32.s32.s32.shr7 %r4, %r1.h0, %r2.h1, -%r3;",
           [](u32 a, u32 b, u32 c) { return word((shalf(a, 0) * shalf(b, 1) + s64{s32(~c)} + 1) >> 7); }},
          {"vmad.s32.s32.s32 %r4, -%r1.b0, -%r2.b1, %r3;",
           [](u32 a, u32 b, u32 c) { return word(sbyte(a, 0) * sbyte(b, 1) + s32(c)); }},
          {"vset.u32.s32.lt %r4, %r1.b0, %r2.b0;",
           [](u32 a, u32 b, u32) { return byte(a, 0) < sbyte(b, 0) ? 1u : 0u; }},
          {"vset.s32.s32.ge.add %r4, %r1, %r2, %r3;",
           [](u32 a, u32 b, u32 c) { return (s32(a) >= s32(b) ? 1u : 0u) + c; }},
      },
      words());
}

// Two halves or four bytes: `one` computes a part of the result from the parts of a and b.
template <unsigned kParts>
u32 parts(u32 a, u32 b, const std::function<s64(u32, u32, unsigned)>& one) {
  u32 out = 0;
  for (unsigned i = 0; i < kParts; ++i)
    out |= (word(one(a, b, i)) & (kParts == 2 ? 0xffffu : 0xffu)) << i * (32 / kParts);
  return out;
}

TEST(Packed, SimdVideo) {
  expect(
      {
          {"vadd2.s32.s32.s32 %r4, %r1, %r2, %r3;",
           [](u32 a, u32 b, u32) {
             return parts<2>(a, b, [](u32 x, u32 y, unsigned i) { return shalf(x, i) + shalf(y, i); });
           }},
          {"vadd2.s32.s32.s32.sat %r4, %r1, %r2, %r3;",
           [](u32 a, u32 b, u32) {
             return parts<2>(a, b,
                             [](u32 x, u32 y, unsigned i) { return clamp(shalf(x, i) + shalf(y, i), -32768, 32767); });
           }},
          {"vsub2.u32.u32.u32.sat %r4.h1, %r1.h01, %r2.h23, %r3;",
           [](u32 a, u32 b, u32 c) { return (c & 0xffff) | word(clamp(half(a, 0) - half(b, 0), 0, 65535)) << 16; }},
          {"vavrg2.s32.s32.s32 %r4, %r1, %r2, %r3;",
           [](u32 a, u32 b, u32) {
             return parts<2>(a, b, [](u32 x, u32 y, unsigned i) {
               const s64 sum = shalf(x, i) + shalf(y, i);
               return sum >= 0 ? (sum + 1) >> 1 : sum >> 1;
             });
           }},
          {"vabsdiff4.u32.u32.u32.add %r4, %r1, %r2, %r3;",
           [](u32 a, u32 b, u32 c) {
             for (unsigned i = 0; i < 4; ++i) c += word(std::abs(byte(a, i) - byte(b, i)));
             return c;
           }},
          {"vmax4.s32.s32.s32 %r4, %r1, %r2, %r3;",
           [](u32 a, u32 b, u32) {
             return parts<4>(a, b, [](u32 x, u32 y, unsigned i) { return std::max(sbyte(x, i), sbyte(y, i)); });
           }},
          {"vmin4.u32.u32.u32 %r4.b20, %r1.b3210, %r2.b7654, %r3;",
           [](u32 a, u32 b, u32 c) {
             const u32 all = parts<4>(a, b, [](u32 x, u32 y, unsigned i) { return std::min(byte(x, i), byte(y, i)); });
             return (all & 0x00ff00ff) | (c & 0xff00ff00);
           }},
          {"vset4.u32.u32.ne %r4, %r1, %r2, %r3;",
           [](u32 a, u32 b, u32) {
             return parts<4>(a, b, [](u32 x, u32 y, unsigned i) { return s64{byte(x, i) != byte(y, i)}; });
           }},
          {"vset2.s32.s32.gt.add %r4, %r1, %r2, %r3;",
           [](u32 a, u32 b, u32 c) {
             for (unsigned i = 0; i < 2; ++i) c += shalf(a, i) > shalf(b, i) ? 1 : 0;
             return c;
           }},
      },
      words());
}

double half_value(u32 bits) { return static_cast<double>(std::bit_cast<Half>(static_cast<uint16_t>(bits))); }
double bfloat_value(u32 bits) { return static_cast<double>(std::bit_cast<float>(bits << 16)); }
u32 half_bits(double value) {
  if (value != value) return 0x7fff;
  return std::bit_cast<uint16_t>(static_cast<Half>(value));  // exact inputs or one rounding
}
u32 two(u32 low, u32 high) { return low | high << 16; }

TEST(Packed, HalvesCompareAndCombine) {
  auto bit = [](bool value) { return value ? 1u : 0u; };
  expect(
      {
          {"setp.lt.f16x2 %p1|%p2, %r1, %r2;\n  selp.u32 %r4, 1, 0, %p1;\n  @%p2 or.b32 %r4, %r4, 2;",
           [&](u32 a, u32 b, u32) {
             return bit(half_value(a) < half_value(b)) | bit(half_value(a >> 16) < half_value(b >> 16)) << 1;
           }},
          {"set.geu.f16x2.f16x2 %r4, %r1, %r2;",
           [&](u32 a, u32 b, u32) {
             return two(!(half_value(a) < half_value(b)) ? 0x3c00 : 0,
                        !(half_value(a >> 16) < half_value(b >> 16)) ? 0x3c00 : 0);
           }},
          {"set.eq.ftz.f16x2.f16x2 %r4, %r1, %r2;",
           [&](u32 a, u32 b, u32) {
             auto flushed = [](u32 bits) { return half_value((bits & 0x7c00) == 0 ? bits & 0x8000 : bits); };
             return two(flushed(a) == flushed(b) ? 0x3c00 : 0, flushed(a >> 16) == flushed(b >> 16) ? 0x3c00 : 0);
           }},
          {"setp.gt.bf16 %p1, %rs2, %rs4;\n  selp.u32 %r4, 1, 0, %p1;",
           [&](u32 a, u32 b, u32) { return bit(bfloat_value(a & 0xffff) > bfloat_value(b & 0xffff)); }},
          {"max.xorsign.abs.f16x2 %r4, %r1, %r2;",
           [](u32 a, u32 b, u32) {
             auto one = [](u32 x, u32 y) -> u32 {
               const double p = std::fabs(half_value(x)), q = std::fabs(half_value(y));
               if (p != p && q != q) return 0x7fff;
               return half_bits(p != p ? q : q != q ? p : std::max(p, q)) | ((x ^ y) & 0x8000);
             };
             return two(one(a & 0xffff, b & 0xffff), one(a >> 16, b >> 16));
           }},
          {"fma.rn.relu.f16 %rs1, %rs2, %rs4, %rs6;\n  cvt.u32.u16 %r4, %rs1;",
           [](u32 a, u32 b, u32 c) {
             const double exact = half_value(a) * half_value(b) + half_value(c);
             return exact != exact ? 0x7fffu : exact > 0 ? half_bits(exact) : 0u;
           }},
          {"min.relu.s16x2 %r4, %r1, %r2;",
           [](u32 a, u32 b, u32) {
             return parts<2>(
                 a, b, [](u32 x, u32 y, unsigned i) { return std::max<s64>(0, std::min(shalf(x, i), shalf(y, i))); });
           }},
      },
      halves());
}

// The NaN of elements outside of a tensor, as a factor, makes fma 0; other NaNs stay.
TEST(Packed, OutOfBoundsNansMakeFmaZero) {
  std::vector<u32> values = halves();
  values.insert(values.end(), {0x7ff73c00, 0x3c007ff7, 0x7ff77ff7, 0xfff77ff6, 0x7ff73f80, 0x3f807ff7});
  auto one = [](u32 a, u32 b, u32 c, bool relu) -> u32 {
    if ((a & 0x7fff) == 0x7ff7 || (b & 0x7fff) == 0x7ff7) return 0;
    const double exact = half_value(a) * half_value(b) + half_value(c);
    return exact != exact ? 0x7fff : relu && !(exact > 0) ? 0 : half_bits(exact);
  };
  expect({{"fma.rn.oob.f16x2 %r4, %r1, %r2, %r3;",
           [&](u32 a, u32 b, u32 c) {
             return two(one(a & 0xffff, b & 0xffff, c & 0xffff, false), one(a >> 16, b >> 16, c >> 16, false));
           }},
          {"fma.rn.oob.relu.f16 %rs1, %rs2, %rs4, %rs6;\n  cvt.u32.u16 %r4, %rs1;",
           [&](u32 a, u32 b, u32 c) { return one(a & 0xffff, b & 0xffff, c & 0xffff, true); }},
          {"fma.rn.oob.bf16 %rs1, %rs2, %rs4, %rs6;\n  setp.eq.u16 %p1, %rs1, 0;\n  setp.nan.bf16 %p2, %rs1, %rs1;\n"
           "  selp.u32 %r4, 1, 0, %p1;\n  @%p2 mov.u32 %r4, 2;",
           [](u32 a, u32 b, u32 c) -> u32 {
             for (const u32 each : {a, b})
               if ((each & 0x7fff) == 0x7ff7) return 1;
             const double exact = bfloat_value(a & 0xffff) * bfloat_value(b & 0xffff) + bfloat_value(c & 0xffff);
             return exact != exact ? 2 : exact == 0 && !std::signbit(exact) ? 1 : 0;
           }}},
         values);
}

// Two singles at once are two single additions; sources of half precision are exact in single.
TEST(Packed, SinglesInPairsAndMixed) {
  auto bits = [](float value) { return value != value ? 0x7fffffffu : std::bit_cast<u32>(value); };
  auto single = [](u32 value) { return std::bit_cast<float>(value); };
  const std::string pair = "  mov.b64 %rd4, {%r1, %r2};\n  mov.b64 %rd5, {%r3, %r1};\n";
  const std::string add =
      pair + "  add.rn.f32x2 %rd6, %rd4, %rd5;\n  mov.b64 {%r5, %r6}, %rd6;\n  xor.b32 %r4, %r5, %r6;";
  const std::string fma = pair + "  fma.rz.f32x2 %rd6, %rd4, %rd5, %rd5;\n  mov.b64 {%r4, %r6}, %rd6;";
  expect({{add, [&](u32 a, u32 b, u32 c) { return bits(single(a) + single(c)) ^ bits(single(b) + single(a)); }},
          {"min.abs.f32 %f4, %f1, %f2, %f3;\n  mov.b32 %r4, %f4;",
           [&](u32 a, u32 b, u32 c) {
             return bits(std::fmin(std::fmin(std::fabs(single(a)), std::fabs(single(b))), std::fabs(single(c))));
           }}},
         singles(), "sm_100");
  expect({{"add.rn.f32.f16 %f4, %rs2, %f3;\n  mov.b32 %r4, %f4;",
           [&](u32 a, u32, u32 c) { return bits(static_cast<float>(half_value(a)) + single(c)); }},
          {"fma.rn.f32.bf16 %f4, %rs2, %rs4, %f3;\n  mov.b32 %r4, %f4;",
           [&](u32 a, u32 b, u32 c) {
             return bits(std::fma(static_cast<float>(bfloat_value(a & 0xffff)),
                                  static_cast<float>(bfloat_value(b & 0xffff)), single(c)));
           }}},
         halves(), "sm_100");
}

// All numbers of a narrow format, by its definition.
struct Narrow {
  int exponent_bits, mantissa_bits;
  bool infinity, nan;
  double value(u32 code) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const u32 magnitude = code & ((1u << (exponent_bits + mantissa_bits)) - 1);
    const int exponent = static_cast<int>(magnitude >> mantissa_bits),
              fraction = static_cast<int>(magnitude & ((1u << mantissa_bits) - 1));
    if (infinity && exponent == (1 << exponent_bits) - 1) return fraction ? NAN : INFINITY;
    if (nan && !infinity && magnitude == (1u << (exponent_bits + mantissa_bits)) - 1) return NAN;
    return exponent ? std::ldexp(1 + fraction * std::ldexp(1.0, -mantissa_bits), exponent - bias)
                    : std::ldexp(fraction, 1 - bias - mantissa_bits);
  }
  // The nearest finite number, of two the even one; found by comparing all numbers.
  u32 nearest(double x) const {
    const u32 codes = 1u << (exponent_bits + mantissa_bits);
    if (x != x) return codes - 1;  // NaN, or the largest number of a format without one
    double largest = 0;
    for (u32 code = 0; code < codes; ++code)
      if (std::isfinite(value(code))) largest = std::max(largest, value(code));
    const double magnitude = std::min(std::fabs(x), largest);
    u32 best = 0;
    for (u32 code = 0; code < codes; ++code) {
      if (!std::isfinite(value(code))) continue;
      const double d = std::fabs(value(code) - magnitude), least = std::fabs(value(best) - magnitude);
      if (d < least || (d == least && !(code & 1))) best = code;
    }
    return best | (std::signbit(x) ? codes : 0);
  }
};

TEST(Packed, NarrowFormats) {
  const Narrow e4m3{4, 3, false, true}, e5m2{5, 2, true, true}, e2m3{2, 3, false, false}, e3m2{3, 2, false, false},
      e2m1{2, 1, false, false};
  auto single = [](u32 value) { return static_cast<double>(std::bit_cast<float>(value)); };
  auto pack = [&](const char* name) {
    return "  cvt.rn.satfinite." + std::string(name) + "x2.f32 %rs1, %f1, %f2;\n  cvt.u32.u16 %r4, %rs1;";
  };
  const std::string p4 = pack("e4m3"), p5 = pack("e5m2"), p23 = pack("e2m3"), p32 = pack("e3m2");
  expect({{p4, [&](u32 a, u32 b, u32) { return e4m3.nearest(single(a)) << 8 | e4m3.nearest(single(b)); }},
          {p5, [&](u32 a, u32 b, u32) { return e5m2.nearest(single(a)) << 8 | e5m2.nearest(single(b)); }}},
         singles());
  expect({{p23, [&](u32 a, u32 b, u32) { return e2m3.nearest(single(a)) << 8 | e2m3.nearest(single(b)); }},
          {p32, [&](u32 a, u32 b, u32) { return e3m2.nearest(single(a)) << 8 | e3m2.nearest(single(b)); }},
          {"{ .reg .b8 %b1, %b2;\n  cvt.rn.satfinite.e2m1x2.f32 %b1, %f1, %f2;\n  cvt.rn.satfinite.e2m1x2.f32 %b2, "
           "0f00000000, 0f00000000;\n"
           "  mov.b16 %rs1, {%b1, %b2};\n  cvt.u32.u16 %r4, %rs1; }",
           [&](u32 a, u32 b, u32) { return e2m1.nearest(single(a)) << 4 | e2m1.nearest(single(b)); }}},
         singles(), "sm_120a");
  expect({{"cvt.rn.f16x2.e4m3x2 %r4, %rs2;",
           [&](u32 a, u32, u32) {
             auto one = [&](u32 code) {
               return half_bits(e4m3.value(code)) |
                      ((code & 0x80) && e4m3.value(code) == e4m3.value(code) ? 0x8000 : 0);
             };
             return two(one(a & 0xff), one(a >> 8 & 0xff));
           }},
          {"cvt.rn.satfinite.f16.f32 %rs1, %f1;\n  cvt.u32.u16 %r4, %rs1;",
           [&](u32 a, u32, u32) {
             const double x = single(a);
             if (x != x) return 0x7fffu;
             const u32 plain = half_bits(x);
             return (plain & 0x7fff) == 0x7c00 ? (plain & 0x8000) | 0x7bff : plain;
           }},
          {"cvt.pack.sat.s16.s32 %r4, %r1, %r2;",
           [](u32 a, u32 b, u32) {
             return word(clamp(s32(a), -32768, 32767)) << 16 | (word(clamp(s32(b), -32768, 32767)) & 0xffff);
           }},
          {"cvt.pack.sat.u4.s32.b32 %r4, %r1, %r2, %r3;",
           [](u32 a, u32 b, u32 c) { return c << 8 | word(clamp(s32(a), 0, 15)) << 4 | word(clamp(s32(b), 0, 15)); }}},
         singles());
}

TEST(Packed, CarryOfADifferenceIsItsInverseBorrow) {
  expect(
      {{"sub.cc.u32 %r5, %r1, %r2;\n  addc.u32 %r4, 0, 0;", [](u32 a, u32 b, u32) { return a >= b ? 1u : 0u; }},
       {"sub.cc.u32 %r5, %r1, %r2;\n  subc.u32 %r4, %r3, 0;", [](u32 a, u32 b, u32 c) { return c - (a < b ? 1 : 0); }}},
      words());
}

TEST(Packed, AtomicsOnVectorsAndPairs) {
  const std::string body = R"(
  cvt.rn.f32.u32 %f1, %r0;
  red.global.add.v2.f32 [%rd0], {%f1, 0f3F800000};
  mov.b32 %r1, 0x3c004000;
  red.global.add.noftz.f16x2 [%rd0+8], %r1;
  mov.b16 %rs1, 0x3c00;
  mov.b16 %rs2, 0x4000;
  atom.global.max.noftz.v2.f16 {%rs3, %rs4}, [%rd0+12], {%rs1, %rs2};
)";
  const std::string text = entry_text(
      "  setp.ne.u32 %p1, %r0, 0;\n  @%p1 bra go;\n  mov.b64 %rd4, 0;\n"
      "  st.global.v2.u64 [%rd0], {%rd4, %rd4};\ngo:\n  bar.sync 0;\n" +
      body);
  const Ran ran = run_kernel(text, {.block = {32}}, 4);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  EXPECT_EQ(ran.out, (std::vector<u32>{std::bit_cast<u32>(496.0f), std::bit_cast<u32>(32.0f), 0x50005400, 0x40003c00}));
}

TEST(Packed, AtomicsOf128Bits) {
  const std::string text = entry_text(R"(
  .reg .b128 %q<4>;
  mov.b64 %rd4, 5;
  st.global.v2.u64 [%rd0], {%rd4, %rd4};
  mov.b64 %rd5, 7;
  mov.b128 %q0, {%rd4, %rd4};
  mov.b128 %q1, {%rd5, %rd4};
  atom.global.cas.b128 %q2, [%rd0], %q0, %q1;
  atom.global.cas.b128 %q3, [%rd0], %q0, %q0;
  st.global.b128 [%rd0+16], %q3;
)");
  const Ran ran = run_kernel(text, {}, 8);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  EXPECT_EQ(ran.out, (std::vector<u32>{7, 0, 5, 0, 7, 0, 5, 0}));
}

// Single precision atomics flush subnormal numbers in global memory and keep them in shared memory.
TEST(Packed, AtomicSumsFlushInGlobalMemoryOnly) {
  const Ran ran =
      run_kernel(entry_text("  mov.u32 %r1, 0;\n  st.global.u32 [%rd0], %r1;\n  st.shared.u32 [cell], %r1;\n"
                            "  mov.b32 %f1, 1;\n  mov.b32 %r2, 1;\n  mov.b32 %f1, %r2;\n"
                            "  red.global.add.f32 [%rd0], %f1;\n  red.shared.add.f32 [cell], %f1;\n"
                            "  ld.shared.u32 %r3, [cell];\n  st.global.u32 [%rd0+4], %r3;\n",
                            ".shared .align 4 .b32 cell;\n"),
                 {}, 2);
  EXPECT_EQ(ran.out, (std::vector<u32>{0, 1}));
}

TEST(Packed, StackOfALane) {
  const std::string body = R"(
  add.u32 %r1, %r0, 1;
  shl.b32 %r1, %r1, 2;
  cvt.u64.u32 %rd4, %r1;
  stacksave.u64 %rd7;
  alloca.u64 %rd5, %rd4, 16;
  cvta.local.u64 %rd6, %rd5;
  st.u32 [%rd6], %r0;
  ld.local.u32 %r2, [%rd5];
  stackrestore.u64 %rd7;
  st.global.u32 [%rd2], %r2;
)";
  const Ran ran = run_kernel(entry_text(body), {.block = {4}}, 4);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  EXPECT_EQ(ran.out, (std::vector<u32>{0, 1, 2, 3}));
  const Ran over = run_kernel(entry_text(body + "  ld.local.u32 %r2, [%rd5];\n"), {.block = {4}}, 4);
  ASSERT_FALSE(over.outcome.ok());
  EXPECT_EQ(over.outcome.faults[0].kind, FaultKind::local_bounds);
}

TEST(Narrow, AddressesOf32BitsReachEverySpace) {
  const std::string text = R"(.version 8.0
.target sm_75
.address_size 32
.const .align 4 .u32 seven = 7;
.shared .align 4 .u32 cell;
.global .align 4 .u32 counter = 5;
.visible .entry k(.param .u32 out, .param .u32 in)
{
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .local .align 4 .b32 mine;
  ld.param.u32 %r1, [out];
  ld.param.u32 %r2, [in];
  ld.global.u32 %r3, [%r2];
  st.global.u32 [%r1], %r3;
  mov.u32 %r4, cell;
  cvta.shared.u32 %r5, %r4;
  st.u32 [%r5], 11;
  ld.shared.u32 %r6, [cell];
  st.u32 [%r1+4], %r6;
  mov.u32 %r4, mine;
  cvta.local.u32 %r5, %r4;
  st.local.u32 [mine], 12;
  ld.u32 %r6, [%r5];
  st.global.u32 [%r1+8], %r6;
  mov.u32 %r4, seven;
  cvta.const.u32 %r5, %r4;
  ld.u32 %r6, [%r5];
  st.global.u32 [%r1+12], %r6;
  mov.u32 %r4, counter;
  ld.u32 %r6, [%r4];
  st.global.u32 [%r1+16], %r6;
  isspacep.shared %p1, %r5;
  isspacep.const %p2, %r5;
  selp.u32 %r6, 1, 0, %p1;
  @%p2 or.b32 %r6, %r6, 2;
  st.global.u32 [%r1+20], %r6;
  ld.global.u32 %r6, [%r1+24];
  ret;
}
)";
  Device device;
  auto program = Program::load_text(device, text, "narrow.ptx");
  ASSERT_TRUE(program) << program.error().message();
  const Address out = *device.allocate(24, "out"), in = *device.allocate(4, "in");
  const u32 value = 42;
  ASSERT_TRUE(device.write(in, std::as_bytes(std::span(&value, 1))));
  const std::vector<Argument> arguments{Argument::of(static_cast<u32>(out)), Argument::of(static_cast<u32>(in))};
  auto outcome = launch(*program, "k", {}, arguments);
  ASSERT_TRUE(outcome) << outcome.error().message();
  ASSERT_EQ(outcome->faults.size(), 1u) << render(*outcome, "narrow.ptx");
  EXPECT_EQ(outcome->faults[0].kind, FaultKind::out_of_bounds);
  EXPECT_EQ(outcome->faults[0].object, "out");
  std::vector<u32> got(6);
  ASSERT_TRUE(device.read(out, std::as_writable_bytes(std::span(got))));
  EXPECT_EQ(got, (std::vector<u32>{42, 11, 12, 7, 5, 2}));
}

// Half of the last place is truncated, so half of the random range makes a carry. The ISA assigns the random bits thus:
// a half to each of two elements, a half to two of four bytes, a byte of each half to four nibbles.
TEST(Packed, StochasticRoundingCarriesIntoTheLastPlace) {
  struct Rounding {
    std::string instruction;
    uint32_t random, expected;
  };
  const std::string two = "cvt.rs.f16x2.f32 %r4, %f0, %f1, %r3;", brain = "cvt.rs.bf16x2.f32 %r4, %f0, %f1, %r3;",
                    finite = "cvt.rs.satfinite.f16x2.f32 %r4, %f2, %f3, %r3;",
                    bytes = "cvt.rs.satfinite.e4m3x4.f32 %r4, {%f4, %f4, %f4, %f5}, %r3;",
                    nibbles = "cvt.rs.satfinite.e2m1x4.f32 %rs0, {%f6, %f6, %f6, %f6}, %r3;\n  cvt.u32.u16 %r4, %rs0;",
                    relu = "cvt.rs.relu.f16x2.f32 %r4, %f1, %f0, %r3;";
  const Rounding all[] = {
      {two, 0, 0x3c00bc00},          {two, 0x10000fff, 0x3c01bc00},   {two, 0x0fff1000, 0x3c00bc01},
      {two, 0xf000e000, 0x3c01bc00}, {brain, 0xffffffff, 0x3f81bf81}, {brain, 0, 0x3f80bf80},
      {finite, 0, 0x7bff7fff},       {bytes, 0x80000000, 0x3939387e}, {bytes, 0x00007fff, 0x3838387e},
      {nibbles, 0, 0x2222},          {nibbles, 0x80000000, 0x3322},   {nibbles, 0x00800080, 0x2233},
      {relu, 0, 0x00003c00}};
  for (const Rounding& each : all) {
    std::string text = entry_text(fmt::format(
        "  mov.f32 %f0, 0f3f801000;\n  mov.f32 %f1, 0fbf801000;\n  mov.f32 %f2, 0f4f000000;\n  mov.f32 %f3, "
        "0f7fc00000;\n  mov.f32 %f4, 0f3f880000;\n  mov.f32 %f5, 0f4f000000;\n  mov.f32 %f6, 0f3fa00000;\n"
        "  mov.b32 %r3, {};\n  {}\n  st.global.u32 [%rd2], %r4;\n",
        each.random, each.instruction));
    text.replace(text.find("8.3\n.target sm_90"), 17, "8.7\n.target sm_100a");
    const Ran ran = run_kernel(text, {}, 1);
    ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
    EXPECT_EQ(ran.out[0], each.expected) << each.instruction << " " << each.random;
  }
}

// `_` among packed elements gives undefined bits: they may be moved, but must not decide anything.
TEST(Packed, APartThatIsLeftOutIsUndefined) {
  const std::string pack = "  mov.b16 %rs0, 7;\n  mov.b32 %r1, {%rs0, _};\n";
  const Ran clean = run_kernel(entry_text(pack + "  and.b32 %r1, %r1, 0xffff;\n  setp.eq.u32 %p1, %r1, 7;\n"
                                                 "  @%p1 st.global.u32 [%rd2], %r1;\n"),
                               {}, 1);
  EXPECT_TRUE(clean.outcome.ok()) << render(clean.outcome, "test.ptx");
  EXPECT_EQ(clean.out[0], 7u);
  const Ran faulty = run_kernel(entry_text(pack + "  setp.eq.u32 %p1, %r1, 7;\n  @%p1 exit;\n"), {}, 1);
  ASSERT_EQ(faulty.outcome.faults.size(), 1u);
  EXPECT_EQ(faulty.outcome.faults[0].kind, FaultKind::uninitialised_branch);
}

// A multicast object of one device has one copy.
TEST(Packed, MultimemOnOneDeviceIsMemory) {
  const Ran ran = run_kernel(entry_text("  mov.b32 %r1, 5;\n  multimem.st.relaxed.gpu.global.b32 [%rd2], %r1;\n"
                                        "  multimem.red.relaxed.gpu.global.add.u32 [%rd0], %r1;\n"
                                        "  multimem.ld_reduce.relaxed.gpu.global.add.u32 %r4, [%rd0];\n"
                                        "  multimem.st.relaxed.gpu.global.b32 [%rd2+4], %r4;\n"),
                             {}, 2);
  EXPECT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  EXPECT_EQ(ran.out, (std::vector<uint32_t>{10, 10}));
  const Ran faulty = run_kernel(entry_text("  multimem.red.relaxed.gpu.global.add.u32 [%rd0+4], %r0;\n"), {}, 1);
  ASSERT_EQ(faulty.outcome.faults.size(), 1u);
  EXPECT_EQ(faulty.outcome.faults[0].kind, FaultKind::out_of_bounds);
}

}  // namespace
}  // namespace ptxkit::emulator
