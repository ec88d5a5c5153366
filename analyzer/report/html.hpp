// The report as one HTML file that needs nothing else: no network, no other file, and scripts only for convenience.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "analyzer/report/analysis.hpp"

namespace ptxkit::report {

// The whole text of a source file that a PTX file names, if it is at hand.
using SourceText = std::function<std::optional<std::string>(const std::string& ptx_path, const std::string& file)>;

// Scores, categories, findings that can be filtered, and for each kernel its PTX beside its source, its control flow,
// its shared memory and the bank conflicts of its first warp. Everything that comes from a file is escaped. Long
// kernels are shown around their findings only, which the page says. Deterministic.
std::string to_html(std::span<const FileAnalysis> files, const AnalysisOptions& options, const SourceText& source_text);

}  // namespace ptxkit::report
