// The reduction removes every removable part, keeps what the test needs, and passes no text to the test that the front
// end rejects.
#include "analyzer/reduce/reduce.hpp"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>

#include "analyzer/ptx/diagnostic.hpp"

namespace ptxkit::reduce {
namespace {

const std::string kText = R"(.version 8.0
.target sm_90
.address_size 64
.file 1 "a.cu"
.global .align 4 .u32 table[2] = {1, 2};
.global .align 4 .u32 unused;
.func helper() { ret; }
.visible .entry kernel(.param .u64 out, .param .u32 count, .param .u64 in)
.maxntid 64, 1, 1
.minnctapersm 2
{
    .reg .pred %p<4>;
    .reg .b32 %r<100>, %plain, %other;
    .reg .b64 %rd<4>;
    .loc 1 3 4
    ld.param.u64 %rd1, [out];
    setp.eq.u32 %p1, %r1, 7;
    {
        .reg .b32 %inner;
        mov.u32 %inner, 5;
    }
    @%p1 bra done;
    mad.lo.u32 %plain, %r40, %r41, 9;
    st.global.u32 [%rd1+16], %plain;
done:
    ret;
}
)";

// Reduces a text as long as it contains all of `words`.
Reduction reduced(const std::vector<std::string>& words, size_t candidate_limit = 1000) {
  size_t asked = 0;
  const auto result = reduce(
      kText, "test.ptx",
      [&](const std::string& text) {
        EXPECT_TRUE(ptx::parse(text, "candidate.ptx").diagnostics.empty()) << text;
        ++asked;
        return std::ranges::all_of(words, [&](const std::string& word) { return text.find(word) != text.npos; });
      },
      [&] { return asked >= candidate_limit; });
  EXPECT_TRUE(result) << result.error().message();
  return result.value_or(Reduction{});
}

constexpr const char* kHeader = ".version 8.0\n.target sm_90\n.address_size 64\n";

TEST(Reduce, LeavesTheHeaderIfEveryTextFails) { EXPECT_EQ(reduced({}).text, kHeader); }

TEST(Reduce, TakesOutStatementsScopesParametersDirectivesAndRegisters) {
  EXPECT_EQ(reduced({"st.global.u32"}).text, std::string(kHeader) +
                                                 ".visible .entry kernel ()\n{\n"
                                                 "\t.reg .b64 %rd<2>;\n\tst.global.u32 [%rd1], 0;\n}\n");
}

TEST(Reduce, SimplifiesOperandsAndShortensRanges) {
  const std::string text = reduced({"mad.lo"}).text;
  EXPECT_THAT(text, ::testing::HasSubstr("mad.lo.u32 %plain, 0, 0, 0;"));
  EXPECT_THAT(reduced({"%r40"}).text, ::testing::HasSubstr(".reg .b32 %r<41>;"));
}

TEST(Reduce, KeepsWhatTheFailureNeeds) {
  const std::string text = reduced({"@%p1 bra"}).text;
  EXPECT_THAT(text, ::testing::AllOf(::testing::HasSubstr("done:"), ::testing::HasSubstr("%p<2>"),
                                     ::testing::Not(::testing::HasSubstr("setp"))));
  EXPECT_THAT(reduced({"= {1, 2}"}).text, ::testing::Not(::testing::HasSubstr("unused")));
}

TEST(Reduce, GivesTheSameTextTwice) { EXPECT_EQ(reduced({"bra", "mad"}).text, reduced({"bra", "mad"}).text); }

TEST(Reduce, StopsInTimeAndSaysSo) {
  const Reduction stopped = reduced({"st.global.u32"}, 3);
  EXPECT_FALSE(stopped.is_minimal);
  EXPECT_EQ(stopped.tested_count, 3u);
  EXPECT_TRUE(reduced({"st.global.u32"}).is_minimal);
}

TEST(Reduce, RefusesWhatDoesNotFailOrParse) {
  const auto never = [](const std::string&) { return false; };
  const auto on = [] { return false; };
  const auto healthy = reduce(kText, "test.ptx", never, on);
  ASSERT_FALSE(healthy);
  EXPECT_EQ(healthy.error().message(), "test.ptx: the original text does not fail");
  const auto broken = reduce(".version 8.0\n.target sm_90\nnonsense\n", "test.ptx", never, on);
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message(), ::testing::HasSubstr("test.ptx:3"));
}

}  // namespace
}  // namespace ptxkit::reduce
