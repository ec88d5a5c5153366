// The report for programs. docs/reports.md documents every field; `schema` changes when a field changes its meaning.
#pragma once

#include <string>

#include "analyzer/report/analysis.hpp"

namespace ptxkit::report {

// One JSON object and a line end. Deterministic: keys in a fixed order, no time, no machine, no path but those given.
std::string to_json(const Report& report);

// The catalogue with what this version runs: what `ptx-debug rules --json` prints.
std::string rules_json();

}  // namespace ptxkit::report
