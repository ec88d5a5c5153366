// Which findings fail a build (--fail-on): a threshold of severity and tier in place of the score's limits.
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
  Tier tier = Tier::possible;        // the least tier that fails it

  // "high", "medium:likely", "none". Case counts. The error says what was expected.
  static Result<FailOn> read(std::string_view words);
  std::string words() const;

  bool matches(const Finding& finding) const;
};

// Status of a module that parses: critical where a critical finding matches; poor where another one does, or where the
// score is below `minimum` (--min-score); else good. The limits 70 and 90 do not count.
Status status_of(const FailOn& fail_on, std::span<const Finding* const> findings, const Score& score,
                 std::optional<double> minimum);

}  // namespace ptxkit::rules
