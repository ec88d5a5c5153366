// The report for programs. docs/reports.md documents every field; `schema` changes when the meaning of a field changes.
#pragma once

#include <memory>
#include <string>

#include "analyzer/report/document.hpp"

namespace ptxkit::report {

// Writes one JSON object and a line end. Deterministic: keys have a fixed order, and it holds no time, no machine and
// only paths from the command line. For a file in parts, fields that depend on all kernels (score, exit code, remarks)
// come after the kernels. `options` must outlive it.
std::unique_ptr<Document> json_document(const AnalysisOptions& options);

// The output of `ptx-debug rules --json`: the catalogue, and which rules this version runs.
std::string rules_json();

}  // namespace ptxkit::report
