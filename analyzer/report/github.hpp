// The report as workflow commands of GitHub Actions, which become annotations beside the code of a pull request.
#pragma once

#include <memory>

#include "analyzer/analyze/suppression.hpp"
#include "analyzer/report/document.hpp"

namespace ptxkit::report {

// One `::error`, `::warning` or `::notice` line for each finding above info that is not suppressed, at its line of the
// C++ or CUDA source where `source_line` has that, else at its line of PTX; then a line for each file.
std::unique_ptr<Document> annotation_document(SourceLine source_line);

}  // namespace ptxkit::report
