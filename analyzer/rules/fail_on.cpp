#include "analyzer/rules/fail_on.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "analyzer/rules/table.hpp"
#include "support/suggest.hpp"

namespace ptxkit::rules {
namespace {

constexpr Severity kSeverities[] = {Severity::critical, Severity::high, Severity::medium, Severity::low,
                                    Severity::info};
constexpr Tier kTiers[] = {Tier::proved, Tier::observed, Tier::likely, Tier::possible};

template <class Value, size_t kCount>
std::optional<Value> value_of(std::string_view word, const Value (&values)[kCount]) {
  for (const Value value : values)
    if (word == text(value)) return value;
  return std::nullopt;
}

template <class Value, size_t kCount>
std::vector<std::string> words_of(const Value (&values)[kCount]) {
  std::vector<std::string> words;
  for (const Value value : values) words.emplace_back(text(value));
  return words;
}

tl::unexpected<Error> unknown(std::string_view word, const std::vector<std::string>& known) {
  return fail(
      fmt::format("expected {}, found '{}'{}", fmt::join(known, ", "), word, did_you_mean(std::string(word), known)));
}

}  // namespace

Result<FailOn> FailOn::read(std::string_view words) {
  if (words == "none") return FailOn();
  const size_t colon = words.find(':');
  FailOn read;
  read.severity = value_of(words.substr(0, colon), kSeverities);
  if (!read.severity) {
    std::vector<std::string> known = words_of(kSeverities);
    known.emplace_back("none");
    return unknown(words.starts_with("none:") ? words : words.substr(0, colon), known);
  }
  if (colon != words.npos) {
    const auto tier = value_of(words.substr(colon + 1), kTiers);
    if (!tier) return unknown(words.substr(colon + 1), words_of(kTiers));
    read.tier = *tier;
  }
  return read;
}

std::string FailOn::words() const { return severity ? fmt::format("{}:{}", text(*severity), text(tier)) : "none"; }

bool FailOn::matches(const Finding& finding) const {
  return severity && finding.severity >= *severity && tier_of(finding) >= tier;
}

Status status_of(const FailOn& fail_on, std::span<const Finding* const> findings, const Score& score,
                 std::optional<double> minimum) {
  Status status = minimum && !score.at_least(*minimum) ? Status::poor : Status::good;
  for (const Finding* finding : findings) {
    if (fail_on.matches(*finding))
      status = std::max(status, finding->severity == Severity::critical ? Status::critical : Status::poor);
  }
  return status;
}

}  // namespace ptxkit::rules
