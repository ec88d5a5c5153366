#include "support/roff.hpp"

#include <gtest/gtest.h>

namespace ptxkit {
namespace {

TEST(Roff, KeepsTextFromBeingARequestOrAnEscape) {
  EXPECT_EQ(roff(".TH"), "\\&.TH");
  EXPECT_EQ(roff("a.b\n'c"), "a.b\n\\&'c");
  EXPECT_EQ(roff("--a \\n"), "\\-\\-a \\en");
}

TEST(Roff, AnOptionHasNamesValueAndHelp) {
  EXPECT_EQ(roff_option({"-j", "--jobs"}, "N", "texts at a time"),
            ".TP\n\\fB\\-j\\fR, \\fB\\-\\-jobs\\fR \\fIN\\fR\ntexts at a time\n");
  EXPECT_EQ(roff_option({"FILE"}, "", "input"), ".TP\n\\fBFILE\\fR\ninput\n");
}

}  // namespace
}  // namespace ptxkit
