// See document.hpp.
#include "analyzer/report/document.hpp"

namespace ptxkit::report {

std::string whole(std::unique_ptr<Document> document, std::span<const FileAnalysis> files) {
  std::string text = document->begin();
  Totals totals;
  for (const FileAnalysis& file : files) {
    totals.add(file);
    text += document->add(file);
  }
  return text + document->end(totals);
}

}  // namespace ptxkit::report
