// The errors of the approximate instructions, which the PTX ISA bounds: the largest error over a dense sweep of
// arguments, compared with the function in long double. PTX ISA 9.0, 9.7.3 and 9.7.4: div, rcp, sqrt, rsqrt (2^-22.9),
// sin and cos (2^-20.5 up to 2 pi, 2^-14.7 up to 100 pi), lg2, ex2 (halves: 2^-9.9), tanh (halves: 2^-10.987).
#include <algorithm>
#include <bit>
#include <cmath>
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

using Real = long double;

enum class Measure : uint8_t { ulp, absolute, relative };

struct Bound {
  std::string_view instruction;  // %f2 from %f0 and, for a quotient, %f1
  Real (*exact)(Real, Real);
  float from, to;  // of the argument, or of its exponent if `logarithmic`
  bool logarithmic;
  Measure measure;
  double most;
};

constexpr Bound kBounds[] = {
    {"rcp.approx.f32 %f2, %f0;", [](Real x, Real) { return 1 / x; }, 0x1p-125F, 0x1p125F, true, Measure::ulp, 1},
    {"rcp.approx.ftz.f32 %f2, %f0;", [](Real x, Real) { return 1 / x; }, 0x1p-125F, 0x1p125F, true, Measure::ulp, 1},
    {"sqrt.approx.f32 %f2, %f0;", [](Real x, Real) { return std::sqrt(x); }, 0x1p-126F, 0x1p127F, true,
     Measure::relative, 0x1p-23},
    {"rsqrt.approx.f32 %f2, %f0;", [](Real x, Real) { return 1 / std::sqrt(x); }, 0x1p-126F, 0x1p127F, true,
     Measure::relative, 0x1.125fbep-23},
    {"sin.approx.f32 %f2, %f0;", [](Real x, Real) { return std::sin(x); }, -6.2831853F, 6.2831853F, false,
     Measure::absolute, 0x1.6a09e6p-21},
    {"sin.approx.f32 %f2, %f0;", [](Real x, Real) { return std::sin(x); }, -314.15926F, 314.15926F, false,
     Measure::absolute, 0x1.3b2c47p-15},
    {"cos.approx.f32 %f2, %f0;", [](Real x, Real) { return std::cos(x); }, -6.2831853F, 6.2831853F, false,
     Measure::absolute, 0x1.6a09e6p-21},
    {"cos.approx.f32 %f2, %f0;", [](Real x, Real) { return std::cos(x); }, -314.15926F, 314.15926F, false,
     Measure::absolute, 0x1.3b2c47p-15},
    {"lg2.approx.f32 %f2, %f0;", [](Real x, Real) { return std::log2(x); }, 0.5F, 2.0F, false, Measure::absolute,
     0x1p-22},
    {"lg2.approx.f32 %f2, %f0;", [](Real x, Real) { return std::log2(x); }, 2.0F, 0x1p127F, true, Measure::relative,
     0x1p-22},
    {"ex2.approx.f32 %f2, %f0;", [](Real x, Real) { return std::exp2(x); }, -125.0F, 127.0F, false, Measure::ulp, 2},
    {"ex2.approx.ftz.f32 %f2, %f0;", [](Real x, Real) { return std::exp2(x); }, -125.0F, 127.0F, false, Measure::ulp,
     2},
    {"tanh.approx.f32 %f2, %f0;", [](Real x, Real) { return std::tanh(x); }, -10.0F, 10.0F, false, Measure::relative,
     0x1p-11},
    {"div.approx.f32 %f2, %f0, %f1;", [](Real x, Real y) { return x / y; }, 0x1p-60F, 0x1p125F, true, Measure::ulp, 2},
    {"div.full.f32 %f2, %f0, %f1;", [](Real x, Real y) { return x / y; }, 0x1p-126F, 0x1p127F, true, Measure::ulp, 2},
    {"cvt.rn.f16.f32 %rs0, %f0;\n  ex2.approx.f16 %rs0, %rs0;\n  cvt.f32.f16 %f2, %rs0;\n  cvt.rn.f16.f32 %rs0, %f0;",
     [](Real x, Real) { return std::exp2(static_cast<Real>(static_cast<Half>(static_cast<float>(x)))); }, -14.0F, 15.5F,
     false, Measure::relative, 0x1.125fbep-10},
    {"cvt.rn.f16.f32 %rs0, %f0;\n  tanh.approx.f16 %rs0, %rs0;\n  cvt.f32.f16 %f2, %rs0;\n  cvt.rn.f16.f32 %rs0, %f0;",
     [](Real x, Real) { return std::tanh(static_cast<Real>(static_cast<Half>(static_cast<float>(x)))); }, -8.0F, 8.0F,
     false, Measure::absolute, 0x1.025135p-11},
};

constexpr size_t kPoints = 1 << 16;

float argument(const Bound& bound, size_t i) {
  const double way = static_cast<double>(i) / (kPoints - 1);
  if (!bound.logarithmic) return static_cast<float>(bound.from + way * (double{bound.to} - double{bound.from}));
  return static_cast<float>(
      std::exp2(std::log2(double{bound.from}) + way * (std::log2(double{bound.to}) - std::log2(double{bound.from}))));
}

double error_of(const Bound& bound, float result, Real exact) {
  const Real distance = std::abs(static_cast<Real>(result) - exact);
  switch (bound.measure) {
    case Measure::absolute:
      return static_cast<double>(distance);
    case Measure::relative:
      return exact == 0 ? static_cast<double>(distance) : static_cast<double>(distance / std::abs(exact));
    default: {
      int exponent = 0;
      std::frexp(exact, &exponent);
      return static_cast<double>(distance / std::ldexp(Real{1}, std::max(exponent, -125) - 24));
    }
  }
}

TEST(Approximations, StayWithinTheErrorsOfTheIsa) {
  for (const Bound& bound : kBounds) {
    SCOPED_TRACE(bound.instruction);
    std::vector<uint32_t> in;
    for (size_t i = 0; i < kPoints; ++i) in.push_back(std::bit_cast<uint32_t>(argument(bound, i)));
    const std::string body =
        "  mov.u32 %r1, %ctaid.x;\n  mad.lo.u32 %r2, %r1, 1024, %r0;\n  mad.wide.u32 %rd3, %r2, 4, %rd1;\n"
        "  mad.wide.u32 %rd2, %r2, 4, %rd0;\n  ld.global.f32 %f0, [%rd3];\n  mul.f32 %f1, %f0, 0f3fb504f3;\n"
        "  add.f32 %f1, %f1, 0f3f9e0652;\n  " +
        std::string(bound.instruction) + "\n  st.global.f32 [%rd2], %f2;\n";
    const Ran ran =
        run_kernel(entry_text(body), {.grid = {kPoints / 1024}, .block = {1024}}, kPoints, in, {.checks = kCheckNone});
    ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
    double worst = 0;
    for (size_t i = 0; i < kPoints; ++i) {
      const float x = std::bit_cast<float>(in[i]), y = x * 0x1.6a09e6p0F + 0x1.3c0ca4p0F;
      worst = std::max(worst, error_of(bound, std::bit_cast<float>(ran.out[i]), bound.exact(x, y)));
    }
    EXPECT_LE(worst, bound.most);
    EXPECT_GT(worst, 0);  // the sweep reaches arguments whose results are rounded
  }
}

struct HalfBound {
  std::string_view instruction, type;
  bool flushes;  // subnormal arguments and results
  Measure measure;
  double most;
};

// All 65,536 numbers of 16 bits, in both halves of a pair and alone. Special values: NaN stays NaN; infinities and
// zeros give the function's limits.
TEST(Approximations, EveryNumberOf16Bits) {
  const auto value = [](std::string_view type, uint32_t bits) -> Real {
    return type == "f16" ? static_cast<Real>(std::bit_cast<Half>(static_cast<uint16_t>(bits)))
                         : static_cast<Real>(std::bit_cast<float>(bits << 16));
  };
  for (const HalfBound& bound :
       std::initializer_list<HalfBound>{{"tanh.approx.", "f16", false, Measure::absolute, 0x1.025135p-11},
                                        {"tanh.approx.", "bf16", false, Measure::absolute, 0x1p-8},
                                        {"ex2.approx.", "f16", false, Measure::relative, 0x1.125fbep-10},
                                        {"ex2.approx.ftz.", "bf16", true, Measure::relative, 0x1p-7}}) {
    SCOPED_TRACE(fmt::format("{}{}", bound.instruction, bound.type));
    std::vector<uint32_t> in;
    for (uint32_t i = 0; i < kPoints; ++i) in.push_back(i | (0xffff - i) << 16);
    const std::string name = fmt::format("{}{}", bound.instruction, bound.type);
    const Ran ran = run_kernel(
        entry_text("  mov.u32 %r1, %ctaid.x;\n  mad.lo.u32 %r2, %r1, 1024, %r0;\n  mad.wide.u32 %rd3, %r2, 4, %rd1;\n"
                   "  mad.wide.u32 %rd2, %r2, 8, %rd0;\n  ld.global.b32 %r3, [%rd3];\n  " +
                   name + "x2 %r4, %r3;\n  mov.b32 {%rs0, %rs1}, %r3;\n  " + name + " %rs0, %rs0;\n  " + name +
                   " %rs1, %rs1;\n  mov.b32 %r5, {%rs0, %rs1};\n  st.global.v2.b32 [%rd2], {%r4, %r5};\n"),
        {.grid = {kPoints / 1024}, .block = {1024}}, 2 * kPoints, in, {.checks = kCheckNone});
    ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
    const bool is_tanh = bound.instruction.starts_with("tanh");
    const unsigned exponent = bound.type == "f16" ? 0x7c00 : 0x7f80;
    const Real smallest = bound.type == "f16" ? 0x1p-14L : 0x1p-126L,
               largest = bound.type == "f16" ? 65504 : 0x1.fep127L;
    double worst = 0;
    for (uint32_t i = 0; i < kPoints; ++i) {
      ASSERT_EQ(ran.out[2 * i], ran.out[2 * i + 1]) << i;
      ASSERT_EQ(ran.out[2 * i] & 0xffff, ran.out[2 * (0xffff - i)] >> 16) << i;
      const uint32_t bits = ran.out[2 * i] & 0xffff;
      Real x = value(bound.type, i);
      if (std::isnan(x)) {
        ASSERT_TRUE(std::isnan(value(bound.type, bits))) << i;
        continue;
      }
      if (bound.flushes && (i & exponent) == 0) x = 0;
      const Real exact = is_tanh ? std::tanh(x) : std::exp2(x), result = value(bound.type, bits);
      if (std::isinf(result) || result > largest) {
        ASSERT_GT(exact, largest) << i;
      } else if (exact < smallest && !is_tanh) {
        // Below the normal numbers: exact to the last place, or zero.
        ASSERT_LE(std::abs(result - exact), bound.flushes ? smallest : 0x1p-24L) << i;
      } else {
        const Real distance = std::abs(result - exact);
        worst = std::max(worst, static_cast<double>(bound.measure == Measure::absolute ? distance : distance / exact));
      }
    }
    EXPECT_LE(worst, bound.most);
    EXPECT_GT(worst, 0);
  }
}

// rcp and rsqrt.approx.ftz.f64 read the upper word of the argument and give that of the result: 20 bits of mantissa.
TEST(Approximations, UpperWordsOfDoubles) {
  for (const bool root : {false, true}) {
    std::vector<uint32_t> in;
    uint32_t state = 1;
    for (uint32_t i = 0; i < kPoints; ++i) {
      state = state * 1664525 + 1013904223;
      in.push_back(state);                                                           // is ignored
      in.push_back((root ? 0u : state & 0x80000000u) | (0x00100000u + i * 32577u));  // every exponent of normal numbers
    }
    const std::string name = root ? "rsqrt" : "rcp";
    const Ran ran = run_kernel(
        entry_text("  mov.u32 %r1, %ctaid.x;\n  mad.lo.u32 %r2, %r1, 1024, %r0;\n  mad.wide.u32 %rd3, %r2, 8, %rd1;\n"
                   "  mad.wide.u32 %rd2, %r2, 8, %rd0;\n  ld.global.f64 %fd0, [%rd3];\n  " +
                   name + ".approx.ftz.f64 %fd1, %fd0;\n  st.global.f64 [%rd2], %fd1;\n"),
        {.grid = {kPoints / 1024}, .block = {1024}}, 2 * kPoints, in, {.checks = kCheckNone});
    ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
    double worst = 0;
    for (uint32_t i = 0; i < kPoints; ++i) {
      ASSERT_EQ(ran.out[2 * i], 0u);
      const double x = std::bit_cast<double>(uint64_t{in[2 * i + 1]} << 32),
                   result = std::bit_cast<double>(uint64_t{ran.out[2 * i + 1]} << 32);
      const Real exact = root ? 1 / std::sqrt(static_cast<Real>(x)) : 1 / static_cast<Real>(x);
      if (std::abs(exact) < 0x1p-1022L) {
        ASSERT_EQ(result, 0) << i;
        continue;
      }
      worst = std::max(worst, static_cast<double>(std::abs((static_cast<Real>(result) - exact) / exact)));
    }
    EXPECT_LE(worst, 0x1p-20) << name;
    EXPECT_GT(worst, 0x1p-22) << name;
  }
}

// div.approx is a * (1 / b), where the reciprocal of a number above 2^126 is flushed.
TEST(Approximations, QuotientsByTheLargestNumbers) {
  const std::string body =
      "  ld.global.f32 %f0, [%rd3];\n  ld.global.f32 %f1, [%rd3+16];\n  div.approx.f32 %f2, %f0, %f1;\n"
      "  st.global.f32 [%rd2], %f2;\n";
  const std::vector<uint32_t> in{0x3f800000, 0xbf800000, 0x7f800000, 0x3f800000,
                                 0x7f000001, 0x7f000001, 0x7f000001, 0x7e800000};
  const Ran ran = run_kernel(entry_text(body), {.block = {4}}, 4, in);
  EXPECT_EQ(ran.out, (std::vector<uint32_t>{0, 0x80000000, 0x7fffffff, 0x00800000}));
}

}  // namespace
}  // namespace ptxkit::emulator
