// A report that is written while files are still being judged, so that only the files at hand are in memory.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "analyzer/analyze/analysis.hpp"

namespace ptxkit::report {

// Each function gives the bytes that come next; begin once, then the files in the order of the report, then end.
class Document {
 public:
  virtual ~Document() = default;
  virtual std::string begin() { return {}; }
  virtual std::string add(const FileAnalysis& file) = 0;
  virtual std::string end(const Totals& /*of what was added*/) { return {}; }
};

// The document of files that are all at hand.
std::string whole(std::unique_ptr<Document> document, std::span<const FileAnalysis> files);

}  // namespace ptxkit::report
