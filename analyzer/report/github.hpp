// The report as GitHub Actions workflow commands, which GitHub shows as annotations in a pull request.
#pragma once

#include <memory>

#include "analyzer/analyze/suppression.hpp"
#include "analyzer/report/document.hpp"

namespace ptxkit::report {

// Writes one `::error`, `::warning` or `::notice` line for each finding above info that is not suppressed, then a line
// for each file. The location is the line of the C++ or CUDA source where `source_line` returns it, and the line of PTX
// otherwise.
std::unique_ptr<Document> annotation_document(SourceLine source_line);

}  // namespace ptxkit::report
