// `ptx-debug explain F081`: prints the rule's page of docs/rules/, which is compiled in; for a rule without a page, its
// row of the catalogue.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/analyze/selection.hpp"
#include "analyzer/report/rule_page.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/score.hpp"
#include "analyzer/rules/table.hpp"
#include "support/plural.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {

namespace {

std::string explanation(const rules::RuleInfo& rule) {
  std::string text = fmt::format("{} {}: {}, {}, {} when refuted{}\n", rule.id, rule.name, rule.category,
                                 plural(static_cast<size_t>(rule.points), "point"), rules::text(rule.severity),
                                 rule.must_prove ? ", loses its points where it is undecided" : "");
  text += fmt::format("survives when {}\n", rule.property);
  const std::string_view page = report::rule_page(rule.id);
  return page.empty() ? text : text + fmt::format("\n{}", page);
}

int explain(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    const auto rule = report::rule_called(word);
    if (!rule) return usage_error("explain", rule.error().message());
    out += (out.empty() ? "" : "\n") + explanation(**rule);
  }
  return print(out) ? 0 : rules::exit_code(rules::Status::unreadable);
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  Verb verb(app, "explain", "explain a rule: what it says, why, how it is proved, and what to do");
  const auto words = std::make_shared<std::vector<std::string>>();
  verb.option("RULE", *words, "ids or names, such as F081 or UnalignedMemoryAccess").required();
  verb.callback([words, &action] { action = [words] { return explain(*words); }; });
}

}  // namespace ptxkit::tools
