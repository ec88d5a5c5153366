// The catalogue's formula for scores, and the precedence of exit codes.
#include "analyzer/rules/score.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace ptxkit::rules {
namespace {

RuleResult result(Verdict verdict, bool loses_points = false) {
  RuleResult made;
  made.verdict = verdict;
  made.loses_points = loses_points;
  return made;
}
constexpr RuleInfo kTwoPoints{"F021", "X", "Y", 2, Severity::critical, false, "z"};
constexpr RuleInfo kMustProve{"F051", "X", "Y", 3, Severity::critical, true, "z"};

TEST(Score, only_survivors_earn_and_only_losses_lose) {
  Score score;
  score.add(kTwoPoints, result(Verdict::not_applicable));
  score.add(kTwoPoints, result(Verdict::undecided));
  score.add(kTwoPoints, result(Verdict::refuted));  // only info findings
  EXPECT_TRUE(score.empty());
  score.add(kTwoPoints, result(Verdict::survived));
  EXPECT_EQ(score.percent(), 100);
  score.add(kTwoPoints, result(Verdict::refuted, true));
  EXPECT_EQ(score.percent(), 50);
  score.add(kTwoPoints, result(Verdict::undecided, true));
  EXPECT_NEAR(score.percent(), 100.0 / 3, 1e-9);
}

TEST(Score, undecided_loses_where_the_rule_must_prove) {
  Score score;
  score.add(kMustProve, result(Verdict::undecided));
  EXPECT_EQ(score.lost, 3u);
  EXPECT_EQ(score.percent(), 0);
}

TEST(Score, a_missing_launch_fact_costs_one_point_of_a_rule_that_must_prove) {
  RuleResult missing = result(Verdict::undecided, true);
  missing.needs_launch_fact = true;
  Score score;
  score.add(kMustProve, missing);
  EXPECT_EQ(score.lost, 1u);
  missing.verdict = Verdict::refuted;  // by a run
  score.add(kMustProve, missing);
  EXPECT_EQ(score.lost, 4u);
}

TEST(Score, the_worst_kernel_is_compared_exactly) {
  const Score scores[] = {{9, 1}, {89, 11}, {8, 1}, {}};
  EXPECT_EQ(worst(scores)->earned, 8u);  // 88.9 % is below 89 %
  EXPECT_FALSE(worst({}).has_value());
  EXPECT_TRUE((Score{0, 1}).worse_than(Score{}));
  EXPECT_FALSE((Score{}).worse_than(Score{0, 1}));
  EXPECT_FALSE((Score{1, 1}).worse_than(Score{2, 2}));
}

TEST(Status, limits_are_inclusive_and_critical_wins) {
  EXPECT_EQ(exit_code(status_of({9, 1}, false, {})), 0);
  EXPECT_EQ(exit_code(status_of({899, 101}, false, {})), 1);
  EXPECT_EQ(exit_code(status_of({7, 3}, false, {})), 1);
  EXPECT_EQ(exit_code(status_of({699, 301}, false, {})), 2);
  EXPECT_EQ(exit_code(status_of({0, 5}, false, {})), 2);
  EXPECT_EQ(exit_code(status_of({}, false, {})), 0);
  EXPECT_EQ(exit_code(status_of({100, 0}, true, {})), 3);
  EXPECT_EQ(exit_code(status_of({0, 5}, true, 90)), 3);
}

TEST(Status, the_minimum_raises_the_bar_but_never_lowers_it) {
  EXPECT_EQ(exit_code(status_of({95, 5}, false, 96)), 2);
  EXPECT_EQ(exit_code(status_of({95, 5}, false, 95)), 0);
  EXPECT_EQ(exit_code(status_of({6, 4}, false, 10)), 2);
  EXPECT_EQ(exit_code(status_of({8, 2}, false, 10)), 1);
}

TEST(Status, the_strongest_condition_wins_over_files) {
  EXPECT_GT(Status::unreadable, Status::unparsable);
  EXPECT_GT(Status::unparsable, Status::critical);
  EXPECT_GT(Status::critical, Status::poor);
  EXPECT_EQ(exit_code(std::max(Status::critical, Status::unreadable)), 11);
  EXPECT_EQ(exit_code(std::max(Status::critical, Status::unparsable)), 10);
}

Finding finding(Severity severity, Tier tier) {
  Finding made;
  made.severity = severity;
  made.tier = tier;
  return made;
}

RuleResult with(const Finding& made) {
  RuleResult refuted = result(Verdict::refuted, true);
  refuted.findings.push_back(made);
  return refuted;
}

// The exit code of a score with 99 points earned by other rules, so that only the cap of this finding can lower it.
int code_with(const Finding& made) {
  Score score{99, 0};
  score.add(kMustProve, with(made));
  return exit_code(status_of(score, made.severity == Severity::critical, {}));
}

TEST(Cap, the_worst_finding_caps_the_score_whatever_the_points) {
  EXPECT_EQ(code_with(finding(Severity::critical, Tier::likely)), 3);
  EXPECT_EQ(code_with(finding(Severity::high, Tier::proved)), 2);
  EXPECT_EQ(code_with(finding(Severity::high, Tier::likely)), 1);
  EXPECT_EQ(code_with(finding(Severity::high, Tier::possible)), 0);
  EXPECT_EQ(code_with(finding(Severity::medium, Tier::proved)), 0);

  Score score{100, 0};
  score.add(kTwoPoints, with(finding(Severity::high, Tier::likely)));
  EXPECT_EQ(score.percent(), 89);
  EXPECT_TRUE(score.is_capped());
  score.add(kTwoPoints, with(finding(Severity::critical, Tier::likely)));
  score.add(kTwoPoints, with(finding(Severity::high, Tier::proved)));
  EXPECT_EQ(score.percent(), 39);
  EXPECT_FALSE(score.at_least(39.5));
  EXPECT_TRUE(score.at_least(39));
}

TEST(Cap, a_confirmed_replay_makes_a_likely_finding_a_proved_one) {
  Finding likely = finding(Severity::high, Tier::likely);
  likely.replay = Replay{Replay::Outcome::confirmed, ""};
  EXPECT_EQ(code_with(likely), 2);
  likely.replay->outcome = Replay::Outcome::unreached;
  EXPECT_EQ(code_with(likely), 1);
}

TEST(Cap, a_kernel_whose_every_rule_is_refuted_scores_nothing) {
  Score score;
  for (int rule = 0; rule < 101; ++rule) score.add(kTwoPoints, with(finding(Severity::low, Tier::possible)));
  EXPECT_EQ(score.percent(), 0);
}

TEST(Cap, the_worst_kernel_is_the_one_that_is_capped_lower_and_then_the_one_with_fewer_points) {
  EXPECT_TRUE((Score{99, 1, 69}).worse_than(Score{70, 30}));
  EXPECT_FALSE((Score{70, 30}).worse_than(Score{99, 1, 69}));
  EXPECT_TRUE((Score{98, 2, 69}).worse_than(Score{99, 1, 69}));
  EXPECT_TRUE((Score{1, 9, 69}).worse_than(Score{99, 1, 39}));
  EXPECT_TRUE((Score{0, 0, 69}).worse_than(Score{}));
}

}  // namespace
}  // namespace ptxkit::rules
