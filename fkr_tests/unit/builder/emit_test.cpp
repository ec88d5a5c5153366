// The text that the DSL emits for small kernels, piece by piece.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "builder/dsl.hpp"

namespace ptxkit::dsl {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

KernelSpec spec(const char* name) { return KernelSpec{.name = name, .block = 64}; }

const auto copy_words =
    define(spec("copy_words"), [](Kernel& k, Arg<"src", Span<read_only, u32>> src, Arg<"dst", Span<global, u32>> dst) {
      auto i = k.block() * 64 + k.thread();
      k.if_(i < src.size(), [&] { dst.store(i, src.load(i) + 1); });
    });

TEST(Emit, ParametersHaveNamesSpacesAndAlignments) {
  const std::string ptx = emit_ptx(copy_words);
  EXPECT_THAT(ptx, HasSubstr(".param .u64 .ptr .global .align 4 copy_words_src,\n\t.param .u32 copy_words_src_size,"));
  EXPECT_THAT(ptx, HasSubstr(", [copy_words_src];"));
  EXPECT_THAT(ptx, Not(HasSubstr("_param_")));
}

TEST(Emit, ReadOnlyMemoryIsLoadedNonCoherently) {
  const std::string ptx = emit_ptx(copy_words);
  EXPECT_THAT(ptx, HasSubstr("ld.global.nc.u32"));
  EXPECT_THAT(ptx, HasSubstr("st.global.u32"));
}

TEST(Emit, LaunchBoundsAreInTheEntry) { EXPECT_THAT(emit_ptx(copy_words), HasSubstr(".reqntid 64, 1, 1\n")); }

TEST(Emit, TargetFollowsTheOptions) {
  EXPECT_THAT(emit_ptx(copy_words, {.sm = 90}), HasSubstr(".version 7.8\n.target sm_90\n.address_size 64\n"));
}

TEST(Emit, LinesAreTheAuthorsOwn) {
  const std::string ptx = emit_ptx(copy_words);
  EXPECT_THAT(ptx, HasSubstr(".file\t1 \"fkr_tests/unit/builder/emit_test.cpp\""));
  EXPECT_THAT(ptx, Not(HasSubstr(".file\t2")));
}

TEST(Emit, IsTheSameTwice) { EXPECT_EQ(emit_ptx(copy_words), emit_ptx(copy_words)); }

}  // namespace
}  // namespace ptxkit::dsl
