// Which rules to run, from --falsify, --select, --check and --ignore.
#pragma once

#include <string>
#include <vector>

#include "analyzer/analyze/analysis.hpp"
#include "support/result.hpp"

namespace ptxkit::report {

struct SelectionWords {
  bool falsify = false;             // start from the whole catalogue, not only from the critical and high rules
  std::vector<std::string> select;  // rules by id or name; `select` and `check` replace the default set
  std::vector<std::string> check;   // names of groups, see check_groups()
  std::vector<std::string> ignore;  // rules removed at the end
};

// Errors: a word that names no rule or group, with the nearest name; an empty selection.
Result<RuleSet> select_rules(const SelectionWords& words);

// The rule with this id or name, ignoring letter case.
Result<const rules::RuleInfo*> rule_called(const std::string& word);

std::vector<std::string> check_groups();  // "barriers", "loaded-value", ...
std::string ids_of(const RuleSet& set);   // "F001, F021"

}  // namespace ptxkit::report
