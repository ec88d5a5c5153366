// Pairs of accesses that the solver decides: each program is undecided without it. Programs that are alike but for one
// instruction have the other answer.
#include <memory>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/prove/solver.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/run_rule.hpp"
#include "support/check.hpp"

namespace ptxkit::rules {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RuleResult run(std::string_view rule, const std::string& body, const prove::Solver* solver,
               uint32_t steps = kProveSteps) {
  const std::string text =
      ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n"
      ".reqntid 64, 1, 1\n{\n.reg .pred %q<4>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<20>;\n"
      ".shared .align 16 .b8 s[65536];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\nld.param.u32 %r2, [n];\n"
      "ld.param.u64 %rd0, [p];\nmov.u32 %r3, s;\n" +
      body + "\nret;\n}\n";
  const ptx::ParseResult parsed = ptx::parse(text, "test.ptx");
  EXPECT_TRUE(parsed.diagnostics.empty()) << ptx::render(parsed.module, parsed.diagnostics[0]);
  LaunchSet launch;
  launch["k"].block[0] = 64;
  launch["k"].block[1] = launch["k"].block[2] = 1;
  launch["k"].grid[0] = 8;
  launch["k"].grid[1] = launch["k"].grid[2] = 1;
  Options options;
  options.launch = &launch;
  options.solver = solver;
  options.prove_steps = steps;
  Context context(parsed.module, 0, parsed.diagnostics, options);
  return run_rule(rule, context);
}

std::shared_ptr<const prove::Solver> solver() {
  auto found = prove::Solver::open();
  EXPECT_TRUE(found) << found.error().message();
  return found ? *found : nullptr;
}

struct Case {
  std::string_view rule, body;
  Verdict verdict = Verdict::survived;
  Severity severity = Severity::info;
};

// Addresses in shared memory: the thread's word, in an order that the block's number mixes.
const std::string_view kMixed =
    "xor.b32 %r4, %r0, %r1;\nshl.b32 %r4, %r4, 2;\nadd.u32 %r4, %r3, %r4;\nst.shared.u32 [%r4], %r0;\n";
const std::string_view kMixedAlike =
    "xor.b32 %r4, %r0, %r1;\nor.b32 %r4, %r4, 1;\nshl.b32 %r4, %r4, 2;\nadd.u32 %r4, %r3, %r4;\n"
    "st.shared.u32 [%r4], %r0;\n";
// By a parameter.
const std::string_view kOfParameter =
    "xor.b32 %r4, %r0, %r2;\nand.b32 %r4, %r4, 63;\nshl.b32 %r4, %r4, 2;\nadd.u32 %r4, %r3, %r4;\n"
    "st.shared.u32 [%r4], %r0;\n";
const std::string_view kOfParameterAlike =
    "and.b32 %r4, %r0, %r2;\nand.b32 %r4, %r4, 63;\nshl.b32 %r4, %r4, 2;\nadd.u32 %r4, %r3, %r4;\n"
    "st.shared.u32 [%r4], %r0;\n";
// A word of global memory for each thread of the grid, in blocks of a stride by the parameter; and one too few.
const std::string_view kOfBlocks =
    "and.b32 %r4, %r2, 3;\nadd.u32 %r4, %r4, 6;\nshl.b32 %r5, %r1, %r4;\nadd.u32 %r5, %r5, %r0;\nmul.wide.u32 %rd1, "
    "%r5, 4;\n"
    "add.u64 %rd2, %rd0, %rd1;\nst.global.u32 [%rd2], %r5;\nst.global.u32 [%rd2], %r1;\n";
const std::string_view kOfBlocksAlike =
    "and.b32 %r4, %r2, 3;\nadd.u32 %r4, %r4, 5;\nshl.b32 %r5, %r1, %r4;\nadd.u32 %r5, %r5, %r0;\nmul.wide.u32 %rd1, "
    "%r5, 4;\n"
    "add.u64 %rd2, %rd0, %rd1;\nst.global.u32 [%rd2], %r5;\nst.global.u32 [%rd2], %r1;\n";
// Where a loaded word says, nothing is known of two threads.
const std::string_view kLoaded =
    "ld.global.u32 %r4, [%rd0];\nxor.b32 %r5, %r0, %r1;\nmul.lo.u32 %r4, %r4, %r5;\nand.b32 %r4, %r4, 252;\n"
    "add.u32 %r4, %r3, %r4;\nst.shared.u32 [%r4], %r0;\n";

TEST(Prove, DecidesWhatIsUndecidedWithout) {
  const auto z3 = solver();
  const Case cases[] = {
      {"F036", kMixed},
      {"F036", kMixedAlike, Verdict::refuted, Severity::high},
      {"F036", kOfParameter},
      {"F036", kOfParameterAlike, Verdict::refuted, Severity::medium},
      {"F102", kOfBlocks},
      {"F102", kOfBlocksAlike, Verdict::refuted, Severity::medium},
      {"F036", kLoaded, Verdict::undecided},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.body);
    EXPECT_EQ(run(each.rule, std::string(each.body), nullptr).verdict, Verdict::undecided);
    const RuleResult result = run(each.rule, std::string(each.body), z3.get());
    EXPECT_EQ(result.verdict, each.verdict) << result.basis;
    if (each.verdict == Verdict::survived) {
      EXPECT_THAT(result.basis, HasSubstr("Z3 proved"));
    }
    if (each.verdict != Verdict::refuted) continue;
    ASSERT_FALSE(result.findings.empty());
    const Finding& finding = result.findings[0];
    EXPECT_EQ(finding.severity, each.severity);
    EXPECT_EQ(finding.tier, each.severity == Severity::high ? Tier::proved : Tier::likely);
    ASSERT_TRUE(finding.witness);
    if (each.severity == Severity::medium) {
      EXPECT_THAT(finding.assumptions, ElementsAre(HasSubstr("parameter 'n' is ")));
    }
    // The answer is the same whenever it is asked.
    const RuleResult again = run(each.rule, std::string(each.body), z3.get());
    EXPECT_EQ(again.findings[0].message, finding.message);
  }
}

TEST(Prove, EndsAtItsLimit) {
  const RuleResult result = run("F036", std::string(kMixed), solver().get(), 1);
  EXPECT_EQ(result.verdict, Verdict::undecided) << result.basis;
}

// A counter that is tested for equality takes no turn behind the one in which it meets its bound.
TEST(Prove, CountsTheTurnsOfALoop) {
  const auto body = [](std::string_view end) {
    return "mad.lo.u32 %r4, %r1, 64, %r0;\nshl.b32 %r5, %r4, 6;\nmul.wide.u32 %rd1, %r5, 4;\nadd.u64 %rd1, %rd0, "
           "%rd1;\n"
           "mov.u64 %rd3, 0;\nnext:\nadd.u64 %rd4, %rd1, %rd3;\nst.global.u32 [%rd4], %r4;\nadd.u64 %rd3, %rd3, 4;\n"
           "cvt.u32.u64 %r6, %rd3;\nsetp.ne.u32 %q0, %r6, " +
           std::string(end) + ";\n@%q0 bra next;\n";
  };
  const auto z3 = solver();
  EXPECT_EQ(run("F102", body("256"), z3.get()).verdict, Verdict::survived);
  EXPECT_EQ(run("F102", body("260"), z3.get()).verdict, Verdict::refuted);
}

}  // namespace
}  // namespace ptxkit::rules
