// Which changes of a module count as a difference.
#include "analyzer/inspect/difference.hpp"

#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "analyzer/inspect/edit_script.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "fkr_tests/unit/analyzer/inspect/module.hpp"

namespace ptxkit::inspect {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kKernel = R"(
.file 1 "a.cu"
.global .align 4 .b8 $table$1[16];
.func (.param .b32 r) helper(.param .b32 a) { .reg .b32 %r<3>; ld.param.b32 %r1, [a]; st.param.b32 [r], %r1; ret; }
.visible .entry k(.param .u64 k_param_0)
.reqntid 128, 1, 1
{
	.reg .pred %p<3>;
	.reg .b32 %r<10>;
	.reg .b64 %rd<4>;
	.shared .align 16 .b8 tile[4096];
	ld.param.u64 %rd1, [k_param_0];
	mov.u32 %r2, tile;
	mov.u64 %rd2, $table$1;
$L__BB0_1:
	.loc 1 12 3
	ld.shared.u32 %r1, [%r2];
	ld.u32 %r3, [%rd2];
	sub.u32 %r4, %r1, %r3;
	setp.lt.u32 %p1, %r4, 9;
	@%p1 bra $L__BB0_1;
	bar.sync 0;
	st.global.u32 [%rd1], %r4;
	ret;
}
)";

std::string with(std::string_view from, std::string_view to) {
  std::string text(kKernel);
  size_t count = 0;
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size(), ++count)
    text.replace(at, from.size(), to);
  EXPECT_GT(count, 0u) << from;
  return text;
}

Difference against(const std::string& text) {
  const auto before = parsed(std::string(kKernel)), after = parsed(text);
  return difference(before.module, after.module);
}

TEST(Difference, NamesThatOnlyTellThingsApartDoNotCount) {
  EXPECT_TRUE(against(std::string(kKernel)).same);
  EXPECT_TRUE(against(with("%r4", "%r9")).same) << "a register";
  EXPECT_TRUE(against(with("$L__BB0_1", "again")).same) << "a label";
  EXPECT_TRUE(against(with("tile", "buffer")).same) << "a variable of the kernel";
  EXPECT_TRUE(against(with("k_param_0", "data")).same) << "a parameter";
  EXPECT_TRUE(against(with("$table$1", "$table$17")).same) << "a generated symbol";
  EXPECT_TRUE(against(with("%r<10>", "%r<99>")).same) << "how many are declared";
}

TEST(Difference, SourcePositionsAndLayoutDoNotCount) {
  EXPECT_TRUE(against(with("\t.loc 1 12 3\n", "")).same);
  EXPECT_TRUE(against(with(".loc 1 12 3", ".loc 1 77 9")).same);
  EXPECT_TRUE(against(with("a.cu", "b.cu")).same);
  EXPECT_TRUE(against(with("\tbar.sync 0;", "$unused: /* here */ bar.sync  0 ;")).same);
}

TEST(Difference, AValueThatComesFromElsewhereCounts) {
  const Difference swapped = against(with("sub.u32 %r4, %r1, %r3", "sub.u32 %r4, %r3, %r1"));
  EXPECT_FALSE(swapped.same);
  EXPECT_THAT(swapped.text, HasSubstr("- \tsub.u32 %r4, %r1, %r3;\n+ \tsub.u32 %r4, %r3, %r1;\n"));
  EXPECT_THAT(swapped.text, Not(HasSubstr("- \tst.global")));
  EXPECT_FALSE(against(with("[%rd1], %r4", "[%rd1], %r3")).same);
  EXPECT_FALSE(against(with("%p1, %r4, 9", "%p1, %r1, 9")).same);
}

TEST(Difference, WhatTheMachineDoesDifferently) {
  const Difference less = against(with("\tbar.sync 0;\n", ""));
  EXPECT_THAT(less.text, HasSubstr("kernel k\n"));
  EXPECT_THAT(less.text, HasSubstr("  instructions                     11 -> 10     (-1)\n"));
  EXPECT_THAT(less.text, HasSubstr("  bar.sync                          1 -> 0      (-1)\n"));
  EXPECT_THAT(less.text, HasSubstr("- \tbar.sync 0;\n"));
  EXPECT_THAT(less.text, Not(HasSubstr("ld.shared   ")));
  EXPECT_THAT(against(with("tile[4096]", "tile[8192]")).text,
              HasSubstr("  shared bytes                   4096 -> 8192   (+4096)\n"));
  EXPECT_THAT(against(with(".reqntid 128", ".reqntid 256")).text, HasSubstr("threads of a CTA"));
}

TEST(Difference, LinesAreNumberedAsInTheFiles) {
  // The context begins with `sub`, three instructions before the barrier.
  EXPECT_THAT(against(with("\tbar.sync 0;\n", "\n\n")).text, HasSubstr("@@ -22 +22 @@\n"));
}

TEST(Difference, WholeFunctionsAndTheHeader) {
  EXPECT_THAT(against(with(".entry k(", ".entry other(")).text, HasSubstr("kernel k: only in the first\n"));
  EXPECT_THAT(against(with(".entry k(", ".entry other(")).text, HasSubstr("kernel other: only in the second\n"));
  EXPECT_THAT(against(with(".b8 $table$1[16]", ".b8 $table$1[32]")).text, HasSubstr("module\n@@\n"));
  auto before = parsed(std::string(kKernel));
  auto after = ptx::parse(".version 8.0\n.target sm_80\n.address_size 64\n" + std::string(kKernel), "b");
  EXPECT_THAT(difference(before.module, after.module).text, HasSubstr("- .target sm_90\n+ .target sm_80\n"));
}

TEST(Difference, SymbolsStandForTheSameInEveryFunction) {
  const std::string two =
      ".global .align 4 .u32 a;\n.global .align 4 .u32 b;\n"
      ".visible .entry k() { .reg .b32 %r<2>; ld.global.u32 %r1, [a]; st.global.u32 [b], %r1; ret; }\n"
      ".visible .entry m() { .reg .b32 %r<2>; ld.global.u32 %r1, [a]; st.global.u32 [b], %r1; ret; }\n";
  std::string crossed = two;
  crossed.replace(crossed.rfind("[a]"), 3, "[b]");
  crossed.replace(crossed.rfind("[b], %r1"), 8, "[a], %r1");
  const auto before = parsed(two), after = parsed(crossed);
  EXPECT_THAT(difference(before.module, after.module).text, HasSubstr("kernel m\n"));
  EXPECT_THAT(difference(before.module, after.module).text, Not(HasSubstr("kernel k\n")));
}

TEST(Difference, LinkedNamesAreNotRenamed) {
  EXPECT_FALSE(difference(parsed(".visible .global .u32 a;").module, parsed(".visible .global .u32 b;").module).same);
  const char* hashed = ".visible .entry _ZN37_INTERNAL_1eb33eeb_4_k_cu_4ff9d5a0_1kEv() { ret; }";
  const char* rehashed = ".visible .entry _ZN37_INTERNAL_77aa31c2_4_k_cu_0b61f9d1_1kEv() { ret; }";
  EXPECT_TRUE(difference(parsed(hashed).module, parsed(rehashed).module).same);
}

TEST(EditScript, MatchesAreALongestCommonSubsequence) {
  const std::vector<std::string> before{"a", "b", "c", "a", "b", "b", "a"}, after{"c", "b", "a", "b", "a", "c"};
  const auto matches = common_subsequence(before, after);
  EXPECT_EQ(matches.size(), 4u);
  for (size_t i = 0; i < matches.size(); ++i) {
    EXPECT_EQ(before[matches[i].before], after[matches[i].after]);
    EXPECT_TRUE(i == 0 || (matches[i - 1].before < matches[i].before && matches[i - 1].after < matches[i].after));
  }
  EXPECT_TRUE(common_subsequence({}, after).empty());
  EXPECT_TRUE(common_subsequence(before, {}).empty());
}

TEST(EditScript, AVeryLargeDifferenceIsAReplacement) {
  std::vector<std::string> before{"head"}, after{"head"};
  for (int i = 0; i < 4000; ++i) {
    before.push_back("a" + std::to_string(i));
    after.push_back("b" + std::to_string(i));
  }
  before.emplace_back("tail");
  after.emplace_back("tail");
  EXPECT_EQ(common_subsequence(before, after).size(), 2u);
}

}  // namespace
}  // namespace ptxkit::inspect
