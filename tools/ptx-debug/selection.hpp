// Which rules to run, from what the command line says: --falsify, --select, --check, --ignore.
#pragma once

#include <string>
#include <vector>

#include "analyzer/analyze/analysis.hpp"
#include "support/result.hpp"

namespace ptxkit::tools {

struct SelectionWords {
  bool falsify = false;             // start from the whole catalogue, not from the critical and high rules
  std::vector<std::string> select;  // rules by id or name; with `check`, these alone are run
  std::vector<std::string> check;   // groups, see check_groups()
  std::vector<std::string> ignore;  // left out in the end
};

// Errors: a word that names no rule or group, with the nearest that does; a selection of which nothing is implemented.
Result<report::RuleSet> select_rules(const SelectionWords& words);

// The rule of id or name `word`, letter case aside.
Result<const rules::RuleInfo*> rule_called(const std::string& word);

std::vector<std::string> check_groups();         // "barriers", "loaded-value", ...
std::string ids_of(const report::RuleSet& set);  // "F001, F021"

}  // namespace ptxkit::tools
