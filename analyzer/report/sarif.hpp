// The report as a SARIF 2.1.0 log, for code scanning services and editors.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "analyzer/report/analysis.hpp"

namespace ptxkit::report {

// The Markdown page of a rule, "F051"; empty where there is none.
using RulePage = std::function<std::string_view(std::string_view id)>;

// One run: every rule of the catalogue with its help, every finding with its place, the data flow to it, the source
// lines behind it, a fingerprint, and, where it is suppressed, why. Deterministic.
std::string to_sarif(const Report& report, const RulePage& rule_page);

}  // namespace ptxkit::report
