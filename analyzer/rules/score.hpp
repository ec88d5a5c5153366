// Converts verdicts to points, and points to the exit code of a CI job. The catalogue defines the formula and the
// precedence. The order of evaluation does not matter, so a score is the same on every run.
//
// Points alone cannot fail a build: with about 100 rules a proved race costs three points. The worst finding therefore
// caps the score.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

// The highest score with a critical finding, with a proved or observed high finding, and with a likely high finding.
// Findings below high cost the points of their rule and cap nothing.
inline constexpr uint32_t kCriticalCapPercent = 39;
inline constexpr uint32_t kHighCapPercent = 69;
inline constexpr uint32_t kLikelyHighCapPercent = 89;

// What a must-prove rule loses where a launch fact alone is missing. Correct code passes strides, and only the host
// knows them.
inline constexpr uint32_t kLaunchFactPoints = 1;

// The tier of a finding. A confirmed replay raises it to `proved`.
Tier tier_of(const Finding& finding);

// The cap from this finding alone; 100: no cap.
uint32_t cap_percent_of(const Finding& finding);

// Points of one kernel, and their cap. A survived rule earns its points. A rule that is refuted, or undecided where it
// must prove, loses them; kLaunchFactPoints where it only needs a launch fact. Every other rule drops out of the total.
struct Score {
  uint32_t earned = 0;
  uint32_t lost = 0;
  uint32_t cap_percent = 100;

  void add(const RuleInfo& rule, const RuleResult& result);

  bool empty() const { return earned + lost == 0; }  // no rule has points
  double points_percent() const;                     // 100 · earned / (earned + lost); 100 when no rule had points
  double percent() const;                            // points_percent(), at most the cap
  bool is_capped() const;                            // whether the cap is below the points
  bool at_least(double limit_percent) const;         // exact for whole numbers
  bool worse_than(const Score& other) const;         // exact comparison; on a tie the score with fewer points is worse
};

// Score of a module: that of its worst kernel; on a tie the first.
std::optional<Score> worst(std::span<const Score> kernels);

// Exit status of `ptx-debug analyze`, in order of precedence: the status of several conditions or files is the maximum.
enum class Status : uint8_t { good, fair, poor, critical, unparsable, unreadable };

int exit_code(Status status);  // 0 1 2 3 10 11
inline constexpr int kUsageExitCode = 64;

// Status of a module that parses. A critical finding takes precedence over the score. `minimum` is --min-score, in
// percent.
Status status_of(const Score& score, bool has_critical, std::optional<double> minimum);

inline constexpr double kGoodPercent = 90;
inline constexpr double kFairPercent = 70;

}  // namespace ptxkit::rules
