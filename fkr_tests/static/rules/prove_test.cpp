// Pairs of accesses that the solver decides: each program is undecided without it. Programs that are alike but for one
// instruction have the other answer.
#include <memory>
#include <string>
#include <string_view>
#include <tuple>

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
               uint32_t steps = kProveSteps, uint32_t blocks = 8) {
  const std::string text =
      ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n"
      ".reqntid 64, 1, 1\n{\n.reg .pred %q<4>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<20>;\n"
      ".shared .align 16 .b8 s[49152];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\nld.param.u32 %r2, [n];\n"
      "ld.param.u64 %rd0, [p];\nmov.u32 %r3, s;\n" +
      body + "\nret;\n}\n";
  const ptx::ParseResult parsed = ptx::parse(text, "test.ptx");
  EXPECT_TRUE(parsed.diagnostics.empty()) << ptx::render(parsed.module, parsed.diagnostics[0]);
  LaunchSet launch;
  launch["k"].block[0] = 64;
  launch["k"].block[1] = launch["k"].block[2] = 1;
  launch["k"].grid[0] = blocks;
  launch["k"].grid[1] = launch["k"].grid[2] = 1;
  launch["k"].parameters["p"].size_bytes = 3328;
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

// Single accesses. Each program is open without the solver: F054 then counts fewer accesses inside their object.
// 12 is the largest product of a block's number and 7 less that number.
const std::string kWithin = "sub.u32 %r4, 7, %r1;\nmul.lo.u32 %r4, %r4, %r1;\n";
// n (n + 1) is even, n (n + 2) is not; of blocks 0 and 1 nothing tells, since block 0 is at 0 and block 1 at 12.
const std::string kEven =
    "add.u32 %r4, %r1, 1;\nmul.lo.u32 %r4, %r4, %r1;\nshl.b32 %r4, %r4, 1;\nadd.u32 %r4, %r3, %r4;\n"
    "st.shared.u32 [%r4], %r0;\n";
const std::string kEvenAlike =
    "add.u32 %r4, %r1, 3;\nmul.lo.u32 %r4, %r4, %r1;\nand.b32 %r5, %r1, 2;\nshr.u32 %r5, %r5, 1;\n"
    "mad.lo.u32 %r4, %r4, 4, %r5;\nadd.u32 %r4, %r3, %r4;\nst.shared.u32 [%r4], %r0;\n";
// An even number of the host times t (t + 1).
const std::string kNeighbours =
    "add.u32 %r4, %r0, 1;\nmul.lo.u32 %r4, %r4, %r0;\nmul.lo.u32 %r4, %r4, %r2;\nand.b32 %r4, %r4, 16383;\n"
    "add.u32 %r4, %r3, %r4;\nst.shared.u32 [%r4], %r0;\ndone:\n";
const std::string kTested = "and.b32 %r4, %r2, 1;\nsetp.ne.u32 %q0, %r4, 0;\n@%q0 bra done;\n" + kNeighbours;

std::string in_shared(unsigned scale) {
  return kWithin + "mul.lo.u32 %r4, %r4, " + std::to_string(scale) +
         ";\nand.b32 %r4, %r4, -4;\nadd.u32 %r4, %r3, %r4;\nst.shared.u32 [%r4], %r0;\n";
}

std::string in_buffer(unsigned scale) {
  return kWithin + "mad.lo.u32 %r4, %r4, " + std::to_string(scale) +
         ", %r0;\nmul.wide.u32 %rd1, %r4, 4;\nadd.u64 %rd1, %rd0, %rd1;\nst.global.u32 [%rd1], %r0;\n";
}

size_t inside(const RuleResult& result) {
  const std::string& basis = result.basis;
  const size_t at = basis.find(" proved inside");
  return at == basis.npos ? 0 : std::stoul(basis.substr(basis.rfind(' ', at - 1) + 1));
}

TEST(Prove, DecidesSingleAccesses) {
  const auto z3 = solver();
  const auto open = [](std::string_view rule, const std::string& body) {
    const RuleResult result = run(rule, body, nullptr);
    return rule == "F054" ? result.verdict == Verdict::survived && inside(result) == 0
                          : result.verdict == Verdict::undecided;
  };
  const Case proved[] = {{"F051", kEven}, {"F051", kTested}};
  for (const Case& each : proved) {
    SCOPED_TRACE(each.body);
    EXPECT_TRUE(open(each.rule, std::string(each.body)));
    const RuleResult result = run(each.rule, std::string(each.body), z3.get());
    EXPECT_EQ(result.verdict, Verdict::survived) << result.basis;
    EXPECT_THAT(result.basis, HasSubstr("; Z3 proved 1 access"));
    EXPECT_EQ(run(each.rule, std::string(each.body), z3.get(), 1).verdict, Verdict::undecided)
        << "a search that the limit ends proves nothing";
  }
  EXPECT_TRUE(open("F051", kNeighbours));
  const RuleResult tested = run("F051", kNeighbours, z3.get());
  EXPECT_EQ(tested.verdict, Verdict::undecided) << "a parameter is no witness: " << tested.basis;

  // 49,152 bytes of shared memory; 12 times 4,096 is beyond.
  EXPECT_TRUE(open("F054", in_shared(4095)));
  const RuleResult within = run("F054", in_shared(4095), z3.get());
  EXPECT_EQ(within.verdict, Verdict::survived);
  EXPECT_EQ(inside(within), 1u) << within.basis;
  EXPECT_THAT(within.basis, HasSubstr("; Z3 proved 1 access"));
  EXPECT_EQ(inside(run("F054", in_shared(4095), z3.get(), 1)), 0u);
  EXPECT_TRUE(open("F054", in_shared(4096)));
  // A buffer of 3,328 bytes: 12 times 64 words and a block's 64.
  EXPECT_TRUE(open("F070", in_buffer(64)));
  EXPECT_EQ(run("F070", in_buffer(64), z3.get()).verdict, Verdict::survived);
  EXPECT_EQ(run("F070", in_buffer(64), z3.get(), 1).verdict, Verdict::undecided);
  EXPECT_TRUE(open("F070", in_buffer(65)));

  const std::tuple<std::string_view, std::string, Severity> refuted[] = {{"F051", kEvenAlike, Severity::critical},
                                                                         {"F054", in_shared(4096), Severity::critical},
                                                                         {"F070", in_buffer(65), Severity::medium}};
  for (const auto& [rule, body, severity] : refuted) {
    SCOPED_TRACE(body);
    EXPECT_TRUE(open(rule, body));
    const RuleResult result = run(rule, body, z3.get());
    EXPECT_EQ(result.verdict, Verdict::refuted) << result.basis;
    ASSERT_EQ(result.findings.size(), 1u);
    EXPECT_EQ(result.findings[0].severity, severity);
    EXPECT_EQ(result.findings[0].tier, Tier::proved);
    EXPECT_TRUE(result.findings[0].witness);
    EXPECT_THAT(result.findings[0].message, HasSubstr(" of block ("));
    EXPECT_EQ(run(rule, body, z3.get()).findings[0].message, result.findings[0].message);
    EXPECT_NE(run(rule, body, z3.get(), 1).verdict, Verdict::refuted) << "the limit ends the search";
    EXPECT_NE(run(rule, body, z3.get(), kProveSteps, 0).verdict, Verdict::refuted)
        << "no launch says that this block exists";
  }
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
