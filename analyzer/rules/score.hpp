// From verdicts to points, and from points to the exit code that a CI job sees. The formula and the precedence are the
// catalogue's; nothing here depends on the order of evaluation, so a score is the same on every run.
//
// Points alone cannot fail a build: with 101 rules a proved race costs three points. So the worst finding caps the
// score.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

// The most that a kernel scores with a critical finding, with a high one that is proved, and with one that is likely.
// Findings below high cost their rule's points and cap nothing.
inline constexpr uint32_t kCriticalCapPercent = 39;
inline constexpr uint32_t kHighCapPercent = 69;
inline constexpr uint32_t kLikelyHighCapPercent = 89;

// The tier of a finding; `proved` too where its replay confirmed it.
Tier tier_of(const Finding& finding);

// What `finding` alone caps a score at; 100 where it caps nothing.
uint32_t cap_percent_of(const Finding& finding);

// Points of one kernel, and their cap. A rule that survived earned its points; one that is refuted, or undecided where
// it must prove, lost them; every other rule leaves the total.
struct Score {
  uint32_t earned = 0;
  uint32_t lost = 0;
  uint32_t cap_percent = 100;

  void add(const RuleInfo& rule, const RuleResult& result);

  bool empty() const { return earned + lost == 0; }  // of points
  double points_percent() const;                     // 100 · earned / (earned + lost); 100 when no rule had points
  double percent() const;                            // points_percent(), but at most the cap
  bool is_capped() const;                            // whether the cap is less than the points
  bool at_least(double limit_percent) const;         // without rounding for whole numbers
  bool worse_than(const Score& other) const;         // exact comparison; of equal ones that with fewer points is worse
};

// Score of a module: its worst kernel; of equally bad ones the first.
std::optional<Score> worst(std::span<const Score> kernels);

// What `ptx-debug analyze` returns. The enumerators stand in order of precedence, the strongest last, so that the
// status of several conditions or files is the greatest.
enum class Status : uint8_t { good, fair, poor, critical, unparsable, unreadable };

int exit_code(Status status);  // 0 1 2 3 10 11
inline constexpr int kUsageExitCode = 64;

// Status of a module that parses: critical beats score. `minimum` is --min-score, in percent.
Status status_of(const Score& score, bool has_critical, std::optional<double> minimum);

inline constexpr double kGoodPercent = 90;
inline constexpr double kFairPercent = 70;

}  // namespace ptxkit::rules
