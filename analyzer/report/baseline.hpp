// Writes the baseline file: today's findings, which later runs do not count.
#pragma once

#include <memory>

#include "analyzer/report/document.hpp"

namespace ptxkit::report {

// Writes what Baseline::read (analyzer/analyze/suppression.hpp) reads: each finding above info that no comment
// suppresses, once.
std::unique_ptr<Document> baseline_document();

}  // namespace ptxkit::report
