// What the difference of two PTX texts says.
#include "tools/kernelc/ptx_diff.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ptxkit::kernelc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kBefore = R"(.version 7.8
.visible .entry k()
.reqntid 128, 1, 1
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<10>;
	.shared .align 16 .b8 table[4096];
	.local .align 4 .b8 frame[8];
$L__BB0_1:
	.loc	1 12 3
	ld.shared.u16 	%r1, [%r2];
	@%p1 bra 	$L__BB0_1;
	bar.warp.sync 	-1;
	st.global.v4.u32 [%rd1], {%r1, %r1, %r1, %r1};
	ret;
}
)";

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kBefore);
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(PtxDiff, ResourcesAsDeclared) {
  const Resources resources = resources_of(kBefore);
  EXPECT_EQ(resources.shared_bytes, 4096u);
  EXPECT_EQ(resources.local_bytes, 8u);
  EXPECT_EQ(resources.register_count, 13u);
  EXPECT_EQ(resources.block_threads, 128u);
  EXPECT_EQ(resources.instruction_count, 5u);
}

TEST(PtxDiff, MixCountsKindsWithoutTypes) {
  const auto mix = instruction_mix(kBefore);
  EXPECT_EQ(mix.at("ld.shared"), 1u);
  EXPECT_EQ(mix.at("bar.warp.sync"), 1u);
  EXPECT_EQ(mix.at("bra"), 1u);
  EXPECT_EQ(mix.at("st.global"), 1u);
  EXPECT_EQ(mix.at("ret"), 1u);
}

TEST(PtxDiff, SourcePositionsMakeNoDifference) {
  EXPECT_EQ(describe_difference(kBefore, kBefore), "");
  EXPECT_EQ(describe_difference(kBefore, replaced(".loc	1 12 3", ".loc	1 99 7")), "");
}

TEST(PtxDiff, ABarrierTakenOutIsNamedCountedAndShown) {
  const std::string text = describe_difference(kBefore, replaced("	bar.warp.sync 	-1;\n", ""));
  EXPECT_THAT(text, HasSubstr("instructions                      5 -> 4      (-1)"));
  EXPECT_THAT(text, HasSubstr("bar.warp.sync                     1 -> 0      (-1)"));
  EXPECT_THAT(text, HasSubstr("- 	bar.warp.sync 	-1;"));
  EXPECT_THAT(text, Not(HasSubstr("ld.shared     ")));
}

TEST(PtxDiff, NumbersOfRegistersAreNotShownAsChanges) {
  std::string renumbered(kBefore);
  for (size_t at = 0; (at = renumbered.find("%r1", at)) != std::string::npos; ++at) renumbered.replace(at, 3, "%r7");
  EXPECT_THAT(describe_difference(kBefore, renumbered), HasSubstr("only the numbers of registers and blocks differ"));
  renumbered.replace(renumbered.find("ld.shared.u16"), 13, "ld.shared.u32");
  const std::string text = describe_difference(kBefore, renumbered);
  EXPECT_THAT(text, HasSubstr("+ \tld.shared.u32"));
  EXPECT_THAT(text, Not(HasSubstr("+ \tst.global")));
}

TEST(PtxDiff, AddedLinesAndResources) {
  const std::string text = describe_difference(kBefore, replaced("table[4096]", "table[8192]"));
  EXPECT_THAT(text, HasSubstr("shared bytes                   4096 -> 8192   (+4096)"));
  EXPECT_THAT(text, HasSubstr("+ 	.shared .align 16 .b8 table[8192];"));
}

}  // namespace
}  // namespace ptxkit::kernelc
