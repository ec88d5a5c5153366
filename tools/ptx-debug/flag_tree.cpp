// See flag_tree.hpp.
#include "tools/ptx-debug/flag_tree.hpp"

#include <utility>

#include <CLI/CLI.hpp>

#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/table.hpp"

namespace ptxkit::tools {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

Flag flag_of(const CLI::Option& option) {
  Flag flag;
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  if (flag.names.empty()) flag.names.push_back(option.get_name(true));
  flag.help = option.get_description();
  if (option.get_items_expected_max() == 0) return flag;
  flag.value = option.get_type_name();
  flag.kind = ValueKind::other;
  const std::string& name = flag.names.back();
  if (flag.value.find('|') != std::string::npos || name == "KIND") {
    flag.kind = ValueKind::words;
    flag.words = split(flag.value, '|');
  } else if (flag.value == "RULES" || name == "RULE") {
    flag.kind = ValueKind::rules;
    for (const rules::RuleInfo& rule : rules::catalogue()) flag.words.emplace_back(rule.id);
  } else if (flag.value == "F" || flag.value == "[F]" || flag.value == "OUT" || name == "FILE" || name == "DIR" ||
             name == "A" || name == "B") {
    flag.kind = ValueKind::path;
  }
  return flag;
}

}  // namespace

std::vector<VerbFlags> flag_tree(const CLI::App& app) {
  std::vector<VerbFlags> verbs;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    VerbFlags verb{each->get_name(), each->get_description(), {}, {}};
    for (const CLI::Option* option : each->get_options()) {
      (option->nonpositional() ? verb.options : verb.operands).push_back(flag_of(*option));
    }
    verbs.push_back(std::move(verb));
  }
  return verbs;
}

std::string summary_of(const CLI::App& app) { return app.get_description(); }

}  // namespace ptxkit::tools
