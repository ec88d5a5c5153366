// `ptx-debug rules`: lists the catalogue and the rules that this version runs.
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/report/json.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/score.hpp"
#include "analyzer/rules/table.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {
namespace {

std::string table() {
  const report::RuleSet front_end = report::front_end_rules();
  std::string out;
  std::string_view category;
  for (const rules::RuleInfo& rule : rules::catalogue()) {
    if (rule.category != category) {
      category = rule.category;
      out += fmt::format("{}{}\n", out.empty() ? "" : "\n", category);
    }
    const size_t index = report::index_of(rule);
    const char* status = front_end[index] ? "front end" : "runs";
    out += fmt::format("  {} {:<9} {} pt {:<8} {:<28} {}\n", rule.id, status, rule.points, rules::text(rule.severity),
                       rule.name, rule.property);
  }
  return out;
}

}  // namespace

void add_rules(CLI::App& app, Action& action) {
  Verb verb(app, "rules", "list the rules, and which of them this version runs");
  const auto json = std::make_shared<bool>(false);
  verb.flag("--json", *json, "as JSON");
  verb.callback([json, &action] {
    action = [json] {
      return print(*json ? report::rules_json() : table()) ? 0 : rules::exit_code(rules::Status::unreadable);
    };
  });
}

}  // namespace ptxkit::tools
