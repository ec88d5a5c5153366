// The report for programs. docs/reports.md documents every field; `schema` changes when a field changes its meaning.
#pragma once

#include <memory>
#include <string>

#include "analyzer/report/document.hpp"

namespace ptxkit::report {

// One JSON object and a line end. Deterministic: keys in a fixed order, no time, no machine, no path but those given.
// Of a file that comes in parts, what only all kernels tell (score, exit code, remarks) stands behind them. `options`
// must outlive it.
std::unique_ptr<Document> json_document(const AnalysisOptions& options);

// The catalogue with what this version runs: what `ptx-debug rules --json` prints.
std::string rules_json();

}  // namespace ptxkit::report
