// Integer points all the way; a percentage is formed only to be shown or compared with a limit.
#include "analyzer/rules/score.hpp"

namespace ptxkit::rules {

void Score::add(const RuleInfo& rule, const RuleResult& result) {
  const bool unproved = result.verdict == Verdict::undecided && rule.must_prove;
  if (result.loses_points || unproved) {
    lost += rule.points;
  } else if (result.verdict == Verdict::survived) {
    earned += rule.points;
  }
}

double Score::percent() const { return empty() ? 100.0 : 100.0 * earned / (earned + lost); }

bool Score::at_least(double limit_percent) const {
  return empty() || 100.0 * earned >= limit_percent * (earned + lost);
}

bool Score::worse_than(const Score& other) const {
  if (empty()) return false;
  if (other.empty()) return lost > 0;
  return uint64_t{earned} * (other.earned + other.lost) < uint64_t{other.earned} * (earned + lost);
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
