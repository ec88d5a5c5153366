// Points stay integers. A percentage is computed only for display or for comparison with a limit.
#include "analyzer/rules/score.hpp"

#include <algorithm>
#include <utility>

namespace ptxkit::rules {

Tier tier_of(const Finding& finding) {
  const bool is_confirmed = finding.replay && finding.replay->outcome == Replay::Outcome::confirmed;
  return is_confirmed ? Tier::proved : finding.tier;
}

uint32_t cap_percent_of(const Finding& finding) {
  if (finding.severity == Severity::critical) return kCriticalCapPercent;
  if (finding.severity != Severity::high) return 100;
  switch (tier_of(finding)) {
    case Tier::proved:
    case Tier::observed:
      return kHighCapPercent;
    case Tier::likely:
      return kLikelyHighCapPercent;
    case Tier::possible:
      break;
  }
  return 100;
}

void Score::add(const RuleInfo& rule, const RuleResult& result) {
  const bool unproved = result.verdict == Verdict::undecided && rule.must_prove;
  if (unproved && result.needs_launch_fact) {
    lost += kLaunchFactPoints;
  } else if (result.loses_points || unproved) {
    lost += rule.points;
  } else if (result.verdict == Verdict::survived) {
    earned += rule.points;
  }
  for (const Finding& finding : result.findings) cap_percent = std::min(cap_percent, cap_percent_of(finding));
}

double Score::points_percent() const { return empty() ? 100.0 : 100.0 * earned / (earned + lost); }

double Score::percent() const { return std::min(points_percent(), static_cast<double>(cap_percent)); }

bool Score::is_capped() const { return points_percent() > cap_percent; }

bool Score::at_least(double limit_percent) const {
  return cap_percent >= limit_percent && (empty() || 100.0 * earned >= limit_percent * (earned + lost));
}

bool Score::worse_than(const Score& other) const {
  // Compare points and cap as fractions: the smaller of both counts, and the points break ties.
  using Fraction = std::pair<uint64_t, uint64_t>;
  const auto fraction = [](const Score& score) {
    return score.empty() ? Fraction{1, 1} : Fraction{score.earned, score.earned + score.lost};
  };
  const auto is_less = [](Fraction a, Fraction b) { return a.first * b.second < b.first * a.second; };
  const auto capped = [&](const Score& score) {
    const Fraction cap{score.cap_percent, 100};
    return is_less(cap, fraction(score)) ? cap : fraction(score);
  };
  const auto mine = capped(*this), others = capped(other);
  return is_less(mine, others) || (!is_less(others, mine) && is_less(fraction(*this), fraction(other)));
}

std::optional<Score> worst(std::span<const Score> kernels) {
  std::optional<Score> result;
  for (const Score& score : kernels) {
    if (!result || score.worse_than(*result)) result = score;
  }
  return result;
}

int exit_code(Status status) {
  static constexpr int kCodes[] = {0, 1, 2, 3, 10, 11};
  return kCodes[static_cast<size_t>(status)];
}

Status status_of(const Score& score, bool has_critical, std::optional<double> minimum) {
  if (has_critical) return Status::critical;
  if (!score.at_least(kFairPercent) || (minimum && !score.at_least(*minimum))) return Status::poor;
  return score.at_least(kGoodPercent) ? Status::good : Status::fair;
}

}  // namespace ptxkit::rules
