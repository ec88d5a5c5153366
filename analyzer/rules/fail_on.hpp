// Selects the findings that fail a build (--fail-on): a threshold of severity and tier, which replaces the score's
// limits.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/score.hpp"
#include "support/result.hpp"

namespace ptxkit::rules {

struct FailOn {
  std::optional<Severity> severity;  // nothing ("none"): no finding fails the build
  Tier tier = Tier::possible;        // the lowest tier that fails it

  // Parses "high", "medium:likely", "none"; case matters. The error says what was expected.
  static Result<FailOn> read(std::string_view words);
  std::string words() const;

  bool matches(const Finding& finding) const;
};

// Status of a module that parses: critical if a critical finding matches; poor if another finding matches, or if the
// score is below `minimum` (--min-score); good otherwise. The limits 70 and 90 do not apply.
Status status_of(const FailOn& fail_on, std::span<const Finding* const> findings, const Score& score,
                 std::optional<double> minimum);

}  // namespace ptxkit::rules
