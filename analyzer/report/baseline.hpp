// The baseline file: findings of today, which later runs do not count.
#pragma once

#include <memory>

#include "analyzer/report/document.hpp"

namespace ptxkit::report {

// What Baseline::read (analyzer/analyze/suppression.hpp) reads: every finding above info that no comment suppresses,
// once.
std::unique_ptr<Document> baseline_document();

}  // namespace ptxkit::report
