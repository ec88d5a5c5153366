// The catalogue's rows, from rules.def.
#include "analyzer/rules/table.hpp"

#include <charconv>

namespace ptxkit::rules {
namespace {

constexpr RuleInfo kCatalogue[] = {
#define RULE(id, function, name, category, points, severity, must_prove, property) \
  {#id, #name, category, points, Severity::severity, must_prove, property},
#define FRONT_END_RULE(id, name, category, points, severity, must_prove, property) \
  {#id, #name, category, points, Severity::severity, must_prove, property},
#include "analyzer/rules/rules.def"
};

}  // namespace

std::span<const RuleInfo> catalogue() { return kCatalogue; }

const RuleInfo* find_rule(std::string_view id) {
  if (id.size() != 4 || id[0] != 'F') return nullptr;
  size_t number = 0;
  const auto [end, error] = std::from_chars(id.data() + 1, id.data() + 4, number);
  if (error != std::errc{} || end != id.data() + 4 || number == 0 || number > std::size(kCatalogue)) return nullptr;
  return &kCatalogue[number - 1];
}

std::string_view text(Verdict verdict) {
  static constexpr std::string_view kTexts[] = {"survived", "refuted", "undecided", "n/a"};
  return kTexts[static_cast<size_t>(verdict)];
}

std::string_view text(Severity severity) {
  static constexpr std::string_view kTexts[] = {"info", "low", "medium", "high", "critical"};
  return kTexts[static_cast<size_t>(severity)];
}

std::string_view text(Tier tier) {
  static constexpr std::string_view kTexts[] = {"possible", "likely", "observed", "proved"};
  return kTexts[static_cast<size_t>(tier)];
}

}  // namespace ptxkit::rules
