// The falsification catalogue as data: every rule once, in order. Reports, scores, `ptx-debug rules` and
// the pages in docs/rules/ use it. The rules' code is elsewhere: rules/run_rule.hpp lists the implementations.
#pragma once

#include <span>
#include <string_view>

#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

std::span<const RuleInfo> catalogue();           // F001 first
const RuleInfo* find_rule(std::string_view id);  // nullptr if there is no rule "F051"

std::string_view text(Verdict verdict);    // "survived", "refuted", "undecided", "n/a"
std::string_view text(Severity severity);  // "critical"
std::string_view text(Tier tier);          // "proved"

}  // namespace ptxkit::rules
