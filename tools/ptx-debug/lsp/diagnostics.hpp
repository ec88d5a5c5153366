// Mistakes and findings of a document, as textDocument/publishDiagnostics has them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "analyzer/analyze/analysis.hpp"
#include "tools/ptx-debug/lsp/answers.hpp"
#include "tools/ptx-debug/lsp/document.hpp"

namespace ptxkit::lsp {

// Something wrong at a place of a text: a mistake that the front end found, or a finding.
struct Trouble {
  std::string_view rule;
  rules::Severity severity = rules::Severity::info;
  ptx::Offset begin = 0, end = 0;
  std::string message;
  const rules::Finding* finding = nullptr;  // null: a mistake
};

// In the order of the text; empty where the rules have not run yet. Findings at one place of several kernels, which a
// function that they all call has, are one.
std::vector<Trouble> troubles_of(const report::FileAnalysis& file);

// The parameters of the notification. Precondition: the document has an analysis. `cut_seconds`: the time was up.
Json published(const Document& document, std::optional<double> cut_seconds);

// The file that a URI names; nothing for other schemes.
std::optional<std::string> path_of(std::string_view uri);

}  // namespace ptxkit::lsp
