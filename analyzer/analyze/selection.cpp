// Groups answer a user's question ("is it the barriers?"); they are not the categories of the catalogue.
#include "analyzer/analyze/selection.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "analyzer/rules/table.hpp"
#include "support/suggest.hpp"

namespace ptxkit::report {
namespace {

struct Group {
  std::string_view name;
  std::vector<std::string_view> ids;
};

const std::vector<Group>& groups() {
  static const std::vector<Group> kGroups = {
      {"addresses", {"F016", "F021", "F022", "F023", "F024", "F030", "F031", "F032"}},
      {"alignment", {"F051", "F074"}},
      {"barriers", {"F036", "F037", "F038", "F039", "F040", "F041", "F045", "F049", "F093"}},
      {"bounds", {"F025", "F054", "F055", "F070"}},
      {"data-flow", {"F071", "F072", "F073", "F074", "F075", "F076", "F077", "F078", "F079", "F080"}},
      {"loaded-value", {"F021", "F051", "F081", "F082"}},
      {"races", {"F036", "F050", "F058", "F102"}},
      {"syntax", {"F001", "F002", "F003", "F004", "F005", "F006", "F007", "F008", "F009", "F010"}},
  };
  return kGroups;
}

bool same_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

std::vector<std::string> check_groups() {
  std::vector<std::string> names;
  for (const Group& group : groups()) names.emplace_back(group.name);
  return names;
}

std::string ids_of(const RuleSet& set) {
  std::string ids;
  for (const rules::RuleInfo& rule : rules::catalogue()) {
    if (set[index_of(rule)]) ids += fmt::format("{}{}", ids.empty() ? "" : ", ", rule.id);
  }
  return ids;
}

Result<const rules::RuleInfo*> rule_called(const std::string& word) {
  std::vector<std::string> known;
  for (const rules::RuleInfo& rule : rules::catalogue()) {
    if (same_ignoring_case(word, rule.id) || same_ignoring_case(word, rule.name)) return &rule;
    known.emplace_back(rule.name);
    if (word.size() < rule.id.size()) known.emplace_back(rule.id);  // F51 for F051; for F999 all ids are equally near
  }
  return fail(fmt::format("unknown rule '{}', expected {} to {} or a rule's name{}", word,
                          rules::catalogue().front().id, rules::catalogue().back().id, did_you_mean(word, known)));
}

Result<RuleSet> select_rules(const SelectionWords& words) {
  RuleSet wanted;
  for (const std::string& word : words.select) {
    const auto rule = rule_called(word);
    if (!rule) return tl::unexpected(rule.error());
    wanted.set(index_of(**rule));
  }
  for (const std::string& word : words.check) {
    const auto group = std::ranges::find(groups(), word, &Group::name);
    if (group == groups().end()) {
      return fail(fmt::format("unknown check '{}', expected {}{}", word, fmt::join(check_groups(), ", "),
                              did_you_mean(word, check_groups())));
    }
    for (const std::string_view id : group->ids) wanted.set(index_of(*rules::find_rule(id)));
  }
  if (words.select.empty() && words.check.empty()) {
    wanted = words.falsify ? all_rules() : important_rules();
  }
  for (const std::string& word : words.ignore) {
    const auto rule = rule_called(word);
    if (!rule) return tl::unexpected(rule.error());
    wanted.reset(index_of(**rule));
  }
  if (wanted.none()) return fail("no rule is left to run");
  return wanted;
}

}  // namespace ptxkit::report
