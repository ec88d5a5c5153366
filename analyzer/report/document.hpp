// A report that is written while files are still being judged, so that only the current files are in memory.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "analyzer/analyze/analysis.hpp"

namespace ptxkit::report {

// Each function returns the next bytes of the report. Call begin() once, then add() for the files in order, then end().
class Document {
 public:
  virtual ~Document() = default;
  virtual std::string begin() { return {}; }
  virtual std::string add(const FileAnalysis& file) = 0;
  virtual std::string end(const Totals& /*of what was added*/) { return {}; }
};

// The whole document for files that are all in memory.
std::string whole(std::unique_ptr<Document> document, std::span<const FileAnalysis> files);

}  // namespace ptxkit::report
