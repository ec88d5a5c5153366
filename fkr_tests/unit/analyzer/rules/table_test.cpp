// Scores rest on the rule table: it must be complete, in order, and have the category sums of the catalogue.
#include "analyzer/rules/table.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace ptxkit::rules {
namespace {

TEST(Table, has_every_rule_once_in_order) {
  ASSERT_GE(catalogue().size(), 101u);
  std::set<std::string_view> names;
  for (size_t i = 0; i < catalogue().size(); ++i) {
    const RuleInfo& rule = catalogue()[i];
    const std::string number = std::to_string(1001 + i).substr(1);
    EXPECT_EQ(rule.id, "F" + number);
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_FALSE(rule.property.empty()) << rule.id;
    EXPECT_FALSE(rule.property.ends_with('.')) << rule.id;
  }
}

TEST(Table, points_sum_up_per_category) {
  std::map<std::string_view, unsigned> points;
  for (const RuleInfo& rule : catalogue()) points[rule.category] += rule.points;
  const std::map<std::string_view, unsigned> expected = {
      {"Syntax", 10},     {"Types", 10},         {"Address spaces", 15}, {"Barriers and races", 15},
      {"Memory", 10},     {"Control flow", 10},  {"Data flow", 10},      {"Known bug patterns", 10},
      {"Performance", 5}, {"Instrumentation", 5}};
  EXPECT_EQ(points, expected);
}

TEST(Table, critical_rules_are_those_of_the_catalogue) {
  std::vector<std::string_view> critical, must_prove;
  for (const RuleInfo& rule : catalogue()) {
    if (rule.severity == Severity::critical) critical.push_back(rule.id);
    if (rule.must_prove) must_prove.push_back(rule.id);
  }
  EXPECT_THAT(critical, testing::ElementsAre("F021", "F038", "F051", "F054", "F081", "F082"));
  EXPECT_THAT(must_prove, testing::ElementsAre("F051"));
}

TEST(Table, finds_by_id_and_refuses_what_is_none) {
  ASSERT_NE(find_rule("F081"), nullptr);
  EXPECT_EQ(find_rule("F081")->name, "LoadedValueBug");
  EXPECT_EQ(find_rule("F001"), &catalogue()[0]);
  EXPECT_EQ(find_rule("F101"), &catalogue()[100]);
  for (const char* id : {"", "F000", "F999", "F1", "f081", "F08x", "F0811", "G081", "F-01", "F+01"}) {
    EXPECT_EQ(find_rule(id), nullptr) << id;
  }
}

}  // namespace
}  // namespace ptxkit::rules
