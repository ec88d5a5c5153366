// The value domain against evaluation: for random straight-line kernels, every fact, interval and affine form must
// allow the number that the evaluator computes for each thread. The evaluator executes the instructions and shares no
// code with the transfer functions.
#include <random>

#include <gtest/gtest.h>

#include "analyzer/flow/delta.hpp"
#include "fkr_tests/unit/analyzer/flow/kernel.hpp"

namespace ptxkit::flow {
namespace {

constexpr unsigned kPrograms = 400;
constexpr unsigned kInstructions = 30;

// A body of random integer instructions over %tid, constants and earlier results. `third` sets %r2.
std::string random_body(std::mt19937& random, const std::string& third = "mov.u32 %r2, 12;") {
  auto pick = [&](unsigned count) { return static_cast<unsigned>(random() % count); };
  std::string body =
      "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %laneid;\n" + third + "\ncvt.u64.u32 %rd0, %r0;\nmov.u64 %rd1, 7;\n";
  unsigned words = 3, longs = 2;
  auto word = [&] {
    return pick(4) ? "%r" + std::to_string(pick(words)) : std::to_string(static_cast<int>(pick(70)) - 8);
  };
  auto reg = [&] { return "%r" + std::to_string(pick(words)); };
  auto wide = [&] { return "%rd" + std::to_string(pick(longs)); };
  for (unsigned i = 0; i < kInstructions; ++i) {
    const std::string d = "%r" + std::to_string(words), l = "%rd" + std::to_string(longs);
    const std::string shift = std::to_string(pick(34));
    switch (pick(24)) {
      case 0:
        body += "add.s32 " + d + ", " + reg() + ", " + word() + ";\n";
        ++words;
        break;
      case 1:
        body += "sub.s32 " + d + ", " + reg() + ", " + word() + ";\n";
        ++words;
        break;
      case 2:
        body += "mul.lo.s32 " + d + ", " + reg() + ", " + word() + ";\n";
        ++words;
        break;
      case 3:
        body += "and.b32 " + d + ", " + reg() + ", " + word() + ";\n";
        ++words;
        break;
      case 4:
        body += "or.b32 " + d + ", " + reg() + ", " + word() + ";\n";
        ++words;
        break;
      case 5:
        body += "xor.b32 " + d + ", " + reg() + ", " + word() + ";\n";
        ++words;
        break;
      case 6:
        body += "shl.b32 " + d + ", " + reg() + ", " + shift + ";\n";
        ++words;
        break;
      case 7:
        body += "shr.u32 " + d + ", " + reg() + ", " + shift + ";\n";
        ++words;
        break;
      case 8:
        body += "shr.s32 " + d + ", " + reg() + ", " + shift + ";\n";
        ++words;
        break;
      case 9:
        body += "min.u32 " + d + ", " + reg() + ", " + word() + ";\n";
        ++words;
        break;
      case 10:
        body += "max.s32 " + d + ", " + reg() + ", " + word() + ";\n";
        ++words;
        break;
      case 11:
        body += "mad.lo.s32 " + d + ", " + reg() + ", " + word() + ", " + reg() + ";\n";
        ++words;
        break;
      case 12:
        body += "rem.u32 " + d + ", " + reg() + ", " + std::to_string(1 + pick(20)) + ";\n";
        ++words;
        break;
      case 13:
        body += "div.u32 " + d + ", " + reg() + ", " + std::to_string(1 + pick(20)) + ";\n";
        ++words;
        break;
      case 14:
        body += (pick(2) ? "bfe.u32 " : "bfe.s32 ") + d + ", " + reg() + ", " + std::to_string(pick(33)) + ", " +
                std::to_string(pick(33)) + ";\n";
        ++words;
        break;
      case 15:
        body += "neg.s32 " + d + ", " + reg() + ";\n";
        ++words;
        break;
      case 16:
        body += "not.b32 " + d + ", " + reg() + ";\n";
        ++words;
        break;
      case 17:
        body += "cvt.u64.u32 " + l + ", " + reg() + ";\n";
        ++longs;
        break;
      case 18:
        body += "cvt.s64.s32 " + l + ", " + reg() + ";\n";
        ++longs;
        break;
      case 19:
        body += "mul.wide.u32 " + l + ", " + reg() + ", " + std::to_string(pick(64)) + ";\n";
        ++longs;
        break;
      case 20:
        body += "mul.wide.s32 " + l + ", " + reg() + ", " + std::to_string(static_cast<int>(pick(64)) - 30) + ";\n";
        ++longs;
        break;
      case 21:
        body += "add.s64 " + l + ", " + wide() + ", " + wide() + ";\n";
        ++longs;
        break;
      case 22:
        body += "cvt.u32.u64 " + d + ", " + wide() + ";\n";
        ++words;
        break;
      case 23:
        body +=
            "setp.lt.s32 %p1, " + reg() + ", " + word() + ";\nselp.b32 " + d + ", " + reg() + ", " + reg() + ", %p1;\n";
        ++words;
        break;
    }
  }
  return body + "ret;";
}

TEST(Domain, AllowsWhatEveryThreadComputes) {
  std::mt19937 random(20261121);
  size_t compared = 0;
  for (unsigned program = 0; program < kPrograms; ++program) {
    const std::string body = random_body(random);
    Kernel k(body);
    ASSERT_TRUE(k.parsed.diagnostics.empty()) << ptx::render(k.parsed.module, k.parsed.diagnostics[0]);
    for (const uint32_t x : {0u, 1u, 5u, 31u, 32u, 63u}) {
      Evaluator evaluator(k.forms, Thread{{x, 0, 0}, {64, 1, 1}});
      for (ValueId id = 0; id < k.ssa.size(); ++id) {
        const unsigned width = width_of(k.ssa, id);
        if (width < 8) continue;
        const auto value = evaluator.value(id);
        ASSERT_TRUE(value) << k.function.registers[k.ssa.value(id).reg].name() << " in\n" << body;
        ++compared;
        const Fact& fact = k.domain.fact(id);
        const std::string where = k.function.registers[k.ssa.value(id).reg].name() + " = " + std::to_string(*value) +
                                  " in thread " + std::to_string(x) + " of\n" + body;
        ASSERT_EQ(fact.bits.zero & *value, 0u) << where;
        ASSERT_EQ(fact.bits.one & ~*value, 0u) << where;
        ASSERT_LE(fact.low, *value) << where;
        ASSERT_GE(fact.high, *value) << where;
        const Form form = k.forms.of(id);
        const auto sum = evaluator.form(form);
        ASSERT_TRUE(sum) << where;
        ASSERT_EQ((static_cast<uint64_t>(*sum) ^ *value) & low_mask(std::min(form.modulus_bits, width)), 0u) << where;
        const Form rounded = k.forms.without_masks(form, 4);
        const auto rounded_sum = evaluator.form(rounded);
        ASSERT_TRUE(rounded_sum) << where;
        ASSERT_EQ((static_cast<uint64_t>(*rounded_sum) ^ *value) & low_mask(std::min(4u, rounded.modulus_bits)), 0u)
            << where;
      }
    }
  }
  EXPECT_GT(compared, 50'000u);
}

// Evaluating threads together gives each thread the result that it has alone. Many of the values differ between
// threads.
TEST(Evaluator, ThreadsAtOnceAreEachThreadAlone) {
  std::mt19937 random(20261122);
  size_t different = 0;
  for (unsigned program = 0; program < kPrograms / 4; ++program) {
    const std::string body = random_body(random, "ld.param.u32 %r2, [n];");
    Kernel k(body);
    ASSERT_TRUE(k.parsed.diagnostics.empty()) << ptx::render(k.parsed.module, k.parsed.diagnostics[0]);
    std::vector<Thread> threads;
    for (uint32_t x = 0; x < 40; ++x) threads.push_back({{x, 0, 0}, {64, 1, 1}});
    Evaluator all(k.forms, threads);
    for (size_t n = 0; n < threads.size(); ++n) {
      Evaluator alone(k.forms, threads[n]);
      for (ValueId id = 0; id < k.ssa.size(); ++id) {
        ASSERT_EQ(all.column(id)[n], alone.value(id))
            << k.function.registers[k.ssa.value(id).reg].name() << " in thread " << n << " of\n"
            << body;
        different += !all.column(id).is_same();
      }
    }
  }
  EXPECT_GT(different, 10'000u);
}

// A position minus its own low bits is rounded down: the form loses the mask and the pointer.
TEST(Forms, APositionLessItsLowBitsIsRoundedDown) {
  const Kernel k(R"(
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [n];
    cvt.u64.u32 %rd2, %r1;
    add.s64 %rd3, %rd1, %rd2;
    cvt.u32.u64 %r2, %rd3;
    and.b32 %r3, %r2, 15;
    sub.u32 %r4, %r1, %r3;
    cvt.u64.u32 %rd4, %r4;
    add.s64 %rd5, %rd1, %rd4;
    add.s64 %rd6, %rd5, 4;
    ret;)");
  Forms forms(k.domain, k.loops);
  const Form down = forms.without_masks(forms.of(k.value("%rd6")), 4);
  EXPECT_EQ(down.base, kNoBase);
  EXPECT_EQ(forms.residue(down, 4), (std::pair<unsigned, uint64_t>{4, 4}));
  // Only four bits are masked, so the fifth is unknown.
  EXPECT_LT(forms.residue(forms.without_masks(forms.of(k.value("%rd6")), 5), 5).first, 5u);
}

// Compares differences, found without the parameter's value, with an evaluation for one value of it.
TEST(Delta, IsTheDifferenceWhateverTheParameterIs) {
  std::mt19937 random(20261121);
  size_t known = 0, beyond = 0;
  for (unsigned program = 0; program < kPrograms; ++program) {
    const std::string body = random_body(random, "ld.param.u32 %r2, [n];");
    Kernel k(body);
    ASSERT_TRUE(k.parsed.diagnostics.empty()) << ptx::render(k.parsed.module, k.parsed.diagnostics[0]);
    const UniformityAnalysis row(k.domain, k.post_dominators, 'x');
    const Thread first{{3, 0, 0}, {64, 1, 1}}, second{{34, 0, 0}, {64, 1, 1}};
    Delta delta(k.forms, row, first, second, {});
    Evaluator one(k.forms, first), other(k.forms, second);
    for (Evaluator* each : {&one, &other}) each->assume(k.value("%r2"), static_cast<uint32_t>(random()));
    other.assume(k.value("%r2"), one.value(k.value("%r2")));
    for (ValueId id = 0; id < k.ssa.size(); ++id) {
      if (width_of(k.ssa, id) < 8) continue;
      const auto differs = delta.of(id);
      if (!differs) continue;
      const auto a = one.value(id), b = other.value(id);
      ASSERT_TRUE(a && b);
      ASSERT_EQ((*b - *a) & 0xff, *differs) << k.function.registers[k.ssa.value(id).reg].name() << " of\n" << body;
      ++known;
      beyond += !delta.first().value(id);
    }
  }
  EXPECT_GT(known, 4'000u);
  EXPECT_GT(beyond, 500u) << "differences of values that are not known";
}

TEST(Uniformity, OfARowLeavesOtherDimensionsOut) {
  const Kernel k(R"(
    mov.u32 %r1, %tid.y;
    mov.u32 %r2, %tid.x;
    ld.param.u32 %r3, [n];
    mad.lo.u32 %r4, %r1, %r3, %r1;
    add.u32 %r5, %r4, %r2;
    ret;)",
                 ".maxntid 256, 1, 1");
  const UniformityAnalysis cta(k.domain, k.post_dominators), row(k.domain, k.post_dominators, 'x');
  EXPECT_EQ(cta.of(k.value("%r4")), Uniformity::divergent);
  EXPECT_EQ(row.of(k.value("%r4")), Uniformity::uniform);
  EXPECT_EQ(row.of(k.value("%r5")), Uniformity::divergent);
}

TEST(Domain, PointersSplitIntoBaseAndOffset) {
  const Kernel k(R"(
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 8;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.u64 %rd5, [%rd4+8];
    add.s64 %rd6, %rd5, 3;
    and.b64 %rd7, %rd6, -16;
    mov.u32 %r2, s;
    cvt.u64.u32 %rd8, %r2;
    cvta.shared.u64 %rd9, %rd8;
    add.s64 %rd10, %rd9, %rd3;
    ret;)");
  const Fact& address = k.domain.fact(k.value("%rd4"));
  EXPECT_EQ(k.domain.base(address.base).kind, Base::Kind::parameter);
  EXPECT_EQ(address.bits.trailing_zeros(), 3u);
  EXPECT_EQ(only_space(address.points_to), ptx::Space::global);
  const Fact& loaded = k.domain.fact(k.value("%rd6"));
  EXPECT_EQ(k.domain.base(loaded.base).kind, Base::Kind::loaded);
  EXPECT_EQ(loaded.bits.low_value(), 3u);
  EXPECT_EQ(k.domain.fact(k.value("%rd7")).bits.trailing_zeros(), 4u);
  const Fact& generic = k.domain.fact(k.value("%rd10"));
  EXPECT_TRUE(generic.from_cvta_shared);
  EXPECT_EQ(only_space(generic.points_to), ptx::Space::shared);
}

TEST(Domain, ALoopThatAdvancesByFourKeepsItsResidue) {
  const Kernel k(R"(
    ld.param.u32 %r9, [n];
    mov.u32 %r1, 2;
  loop:
    add.u32 %r1, %r1, 4;
    setp.lt.u32 %p1, %r1, %r9;
    @%p1 bra loop;
    ret;)");
  const Fact& fact = k.domain.fact(k.value("%r1"));
  EXPECT_EQ(fact.bits.known_low(), 2u);
  EXPECT_EQ(fact.bits.low_value(), 2u);
}

}  // namespace
}  // namespace ptxkit::flow
