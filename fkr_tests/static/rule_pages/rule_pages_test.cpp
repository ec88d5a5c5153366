// The pages of docs/rules/ contain programs: each has a PTX text that its rule refutes and one that survives it.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/evidence/evidence.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/report/document.hpp"
#include "analyzer/report/text.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/table.hpp"
#include "runtime/launch/differential.hpp"
#include "support/file.hpp"

namespace ptxkit {
namespace {

using rules::Verdict;

std::string page_of(std::string_view id) { return read_file("docs/rules/" + std::string(id) + ".md").value_or(""); }

std::vector<std::string> ids_with_pages() {
  std::vector<std::string> ids;
  for (const auto& entry : std::filesystem::directory_iterator("docs/rules")) {
    if (entry.path().extension() == ".md") ids.push_back(entry.path().stem());
  }
  std::ranges::sort(ids);
  return ids;
}

// The fenced block ```ptx KIND of a page.
std::string block(const std::string& page, const std::string& kind) {
  const std::string opening = "```ptx " + kind + "\n";
  const size_t at = page.find(opening);
  if (at == page.npos) return "";
  const size_t begin = at + opening.size();
  return page.substr(begin, page.find("```", begin) - begin);
}

report::FileAnalysis analyzed(const std::string& text) {
  report::AnalysisOptions options;
  options.rules.evidence = &rules::shipped_evidence();
  // The comparison of `--differential`, with the emulator's results in the place of the hardware's.
  options.rules.differential = [](const ptx::Module& module, ptx::FunctionId kernel) {
    return compare_schedules(module, kernel, nullptr);
  };
  return report::analyze(text, "example.ptx", options);
}

std::string words(const std::string& text) {
  const report::FileAnalysis file = analyzed(text);
  return whole(report::text_document({.verbose = true}), {&file, 1});
}

class RulePage : public testing::TestWithParam<std::string> {
 protected:
  const rules::RuleResult* result_of(const report::FileAnalysis& file) const {
    for (const report::RuleVerdict& verdict : file.kernels.at(0).verdicts) {
      if (verdict.rule->id == GetParam()) return &verdict.result;
    }
    return nullptr;
  }
};

TEST_P(RulePage, has_the_rules_name_and_every_part) {
  const rules::RuleInfo* rule = rules::find_rule(GetParam());
  ASSERT_NE(rule, nullptr);
  const std::string page = page_of(GetParam());
  EXPECT_TRUE(page.starts_with("# " + std::string(rule->id) + " " + std::string(rule->name) + "\n"));
  // What, why, how it is proved, known limits, example, remedy.
  for (const char* part :
       {"**What.**", "**Why.**", "**How it is decided.**", "**Limits.**", "## Example", "**Remedy.**"}) {
    EXPECT_THAT(page, testing::HasSubstr(part));
  }
}

TEST_P(RulePage, refutes_its_first_example) {
  const std::string text = block(page_of(GetParam()), "refuted");
  ASSERT_FALSE(text.empty());
  const auto file = analyzed(text);
  const rules::RuleResult* result = result_of(file);
  ASSERT_NE(result, nullptr);
  EXPECT_EQ(result->verdict, Verdict::refuted) << words(text);
  const bool is_advice = std::ranges::all_of(
      result->findings, [](const rules::Finding& finding) { return finding.severity == rules::Severity::info; });
  EXPECT_NE(result->loses_points, is_advice);
  EXPECT_FALSE(result->findings.empty());
  for (const rules::Finding& finding : result->findings) EXPECT_FALSE(finding.message.empty());
}

TEST_P(RulePage, has_a_second_example_that_survives) {
  const std::string text = block(page_of(GetParam()), "survives");
  ASSERT_FALSE(text.empty());
  const auto file = analyzed(text);
  const rules::RuleResult* result = result_of(file);
  ASSERT_NE(result, nullptr);
  EXPECT_FALSE(result->loses_points) << words(text);
  EXPECT_NE(result->verdict, Verdict::undecided) << words(text);
  EXPECT_EQ(file.critical_count(), 0u) << words(text);
}

INSTANTIATE_TEST_SUITE_P(Pages, RulePage, testing::ValuesIn(ids_with_pages()),
                         [](const auto& page) { return page.param; });

TEST(RulePages, every_rule_has_a_page) {
  const auto ids = ids_with_pages();
  for (const rules::RuleInfo& rule : rules::catalogue()) {
    EXPECT_NE(std::ranges::find(ids, rule.id), ids.end()) << rule.id;
  }
}

}  // namespace
}  // namespace ptxkit
