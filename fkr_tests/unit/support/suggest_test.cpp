// Tests "did you mean": it helps with typing errors and is silent otherwise.
#include "support/suggest.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace ptxkit {
namespace {

const std::vector<std::string> kWords = {"analyze", "check", "explain", "rules", "--falsify", "--min-score"};

TEST(Suggest, finds_the_nearest_word) {
  EXPECT_EQ(closest("analyse", kWords), "analyze");
  EXPECT_EQ(closest("anaylze", kWords), "analyze");
  EXPECT_EQ(closest("ANALYZE", kWords), "analyze");
  EXPECT_EQ(closest("chek", kWords), "check");
  EXPECT_EQ(closest("--flasify", kWords), "--falsify");
  EXPECT_EQ(closest("--minscore", kWords), "--min-score");
}

TEST(Suggest, is_empty_if_no_word_is_near) {
  EXPECT_FALSE(closest("", kWords).has_value());
  EXPECT_FALSE(closest("frobnicate", kWords).has_value());
  EXPECT_FALSE(closest("x", kWords).has_value());
  EXPECT_FALSE(closest(std::string(1 << 20, 'a'), kWords).has_value());
  EXPECT_FALSE(closest("check", {}).has_value());
  EXPECT_EQ(did_you_mean("frobnicate", kWords), "");
  EXPECT_EQ(did_you_mean("rule", kWords), "; did you mean 'rules'?");
}

TEST(Suggest, the_nearest_wins_and_of_equals_the_first) {
  const std::vector<std::string> words = {"bat", "cat", "chat"};
  EXPECT_EQ(closest("cat", words), "cat");
  EXPECT_EQ(closest("rat", words), "bat");
}

}  // namespace
}  // namespace ptxkit
