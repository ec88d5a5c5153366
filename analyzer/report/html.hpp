// The report as one HTML file that needs nothing else: no network, no other file, and scripts only for convenience.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "analyzer/analyze/analysis.hpp"
#include "support/result.hpp"

namespace ptxkit::report {

// The whole text of a source file that a PTX file names, if it is at hand.
using SourceText = std::function<std::optional<std::string>(const std::string& ptx_path, const std::string& file)>;

// Scores, categories, findings that can be filtered, and for each kernel its PTX beside its source, its control flow,
// its shared memory and the bank conflicts of its first warp. Everything that comes from a file is escaped. Long
// kernels are shown around their findings only, which the page says. Deterministic.
std::string to_html(std::span<const FileAnalysis> files, const AnalysisOptions& options, const SourceText& source_text);

// The same as files are judged, part by part. In memory are the kernels that may still be shown whole, and their files;
// a section that is settled goes to a spool. `options` and `source_text` must outlive it.
class HtmlReport {
 public:
  // The spool's file lies beside `path`.
  HtmlReport(const AnalysisOptions& options, const SourceText& source_text, const std::string& path);
  ~HtmlReport();
  HtmlReport(const HtmlReport&) = delete;
  HtmlReport& operator=(const HtmlReport&) = delete;

  // Takes the kernels out of `file`, whose statements must be there.
  void add(const std::shared_ptr<FileAnalysis>& file);
  // Replaces the file at `path` by the page; nothing can be added behind it.
  Result<void> save(const std::string& path);

 private:
  std::unique_ptr<class Page> page_;
};

}  // namespace ptxkit::report
