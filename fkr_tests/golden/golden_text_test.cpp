// The golden text of a kernel's PTX, and the description of a change. inspect_test tests the comparison itself.
#include "tools/kernelc/golden_text.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ptxkit::kernelc {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kBefore = R"(.version 7.8
.target sm_80
.address_size 64
.file 1 "k.cpp"
.visible .entry k(.param .u64 data)
.reqntid 128, 1, 1
{
	.reg .b32 	%r<10>;
$L__tmp0:
	.loc	1 12 3
	mov.u32 	%r1, 5;
	bar.warp.sync 	-1;
	ret;
}
)";

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kBefore);
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(GoldenText, SourcePositionsAreNotKept) {
  EXPECT_EQ(normalise(kBefore).find(".loc"), std::string::npos);
  EXPECT_EQ(normalise(kBefore).find("$L__tmp0"), std::string::npos);
  EXPECT_EQ(describe_difference(kBefore, kBefore), "");
  EXPECT_EQ(describe_difference(kBefore, replaced(".loc	1 12 3", ".loc	1 99 7")), "");
}

TEST(GoldenText, AChangeIsNamedCountedAndShown) {
  const std::string text = describe_difference(kBefore, replaced("	bar.warp.sync 	-1;\n", ""));
  EXPECT_THAT(text, HasSubstr("instructions                      3 -> 2      (-1)"));
  EXPECT_THAT(text, HasSubstr("- \tbar.warp.sync -1;"));
}

TEST(GoldenText, NumbersAloneAreSaidToDiffer) {
  EXPECT_THAT(describe_difference(kBefore, replaced("%r1, 5", "%r7, 5")), HasSubstr("only names, layout"));
}

TEST(GoldenText, WhatCannotBeCompared) {
  EXPECT_THAT(describe_difference("", kBefore), HasSubstr("nothing was accepted before"));
  EXPECT_THAT(describe_difference(kBefore, replaced("%r1, 5", "%x1, 5")), HasSubstr("after:8:"));
}

// A text for a newer target is stored only if more than the header differs.
TEST(GoldenText, StoresOneTextWhereTargetsDifferInTheHeader) {
  std::string folder = (std::filesystem::temp_directory_path() / "ptxkit-golden-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string first = replaced("sm_80", "sm_75"), second(kBefore), other = replaced("%r1, 5", "%r1, 6");
  EXPECT_FALSE(accepted(folder, "k", "sm_75"));
  ASSERT_TRUE(store(folder, "k", "sm_75", first));
  ASSERT_TRUE(store(folder, "k", "sm_80", other));
  EXPECT_EQ(accepted(folder, "k", "sm_75").value(), first);
  EXPECT_EQ(accepted(folder, "k", "sm_80").value(), other);
  EXPECT_TRUE(std::filesystem::exists(folder + "/k.sm_80.ptx"));
  ASSERT_TRUE(store(folder, "k", "sm_80", second));
  EXPECT_EQ(accepted(folder, "k", "sm_80").value(), second);
  EXPECT_FALSE(std::filesystem::exists(folder + "/k.sm_80.ptx"));
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(store(folder, "k", "sm_75", first)) << "the folder is gone";
}

}  // namespace
}  // namespace ptxkit::kernelc
