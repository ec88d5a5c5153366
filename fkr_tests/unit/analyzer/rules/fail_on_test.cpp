// --fail-on: which findings fail a build, and the messages for invalid words.
#include "analyzer/rules/fail_on.hpp"

#include <string>

#include <gtest/gtest.h>

namespace ptxkit::rules {
namespace {

int code(const char* words, Severity severity, Tier tier, std::optional<double> minimum = {}) {
  Finding finding;
  finding.severity = severity;
  finding.tier = tier;
  const Finding* const findings[] = {&finding};
  // The score is 0: the limits 70 and 90 have no effect.
  return exit_code(status_of(*FailOn::read(words), findings, Score{0, 9}, minimum));
}

TEST(FailOn, a_finding_at_least_this_severe_and_this_sure_fails_the_build) {
  EXPECT_EQ(code("high", Severity::high, Tier::possible), 2);
  EXPECT_EQ(code("high", Severity::critical, Tier::likely), 3);
  EXPECT_EQ(code("high", Severity::medium, Tier::proved), 0);
  EXPECT_EQ(code("high:proved", Severity::high, Tier::likely), 0);
  EXPECT_EQ(code("high:proved", Severity::critical, Tier::likely), 0);
  EXPECT_EQ(code("medium:likely", Severity::medium, Tier::likely), 2);
  EXPECT_EQ(code("info", Severity::info, Tier::possible), 2);
  EXPECT_EQ(code("none", Severity::critical, Tier::proved), 0);
}

TEST(FailOn, the_least_score_that_was_asked_for_still_counts) {
  EXPECT_EQ(code("none", Severity::info, Tier::possible, 1), 2);
  EXPECT_EQ(code("none", Severity::info, Tier::possible, 0), 0);
}

TEST(FailOn, words_are_read_and_written_the_same) {
  for (const char* words : {"critical:proved", "high:likely", "medium:possible", "low:proved", "info:possible", "none"})
    EXPECT_EQ(FailOn::read(words)->words(), words);
  EXPECT_EQ(FailOn::read("high")->words(), "high:possible");
}

TEST(FailOn, unknown_words_are_refused_with_what_was_expected) {
  EXPECT_EQ(FailOn::read("hihg").error().what,
            "expected critical, high, medium, low, info, none, found 'hihg'; did you mean 'high'?");
  EXPECT_EQ(FailOn::read("high:prooved").error().what,
            "expected proved, observed, likely, possible, found 'prooved'; did you mean 'proved'?");
  EXPECT_EQ(FailOn::read("none:proved").error().what,
            "expected critical, high, medium, low, info, none, found 'none:proved'");
  EXPECT_FALSE(FailOn::read(""));
  EXPECT_FALSE(FailOn::read("high:"));
}

}  // namespace
}  // namespace ptxkit::rules
