// The report as one self-contained HTML file: no network access, no other file. The page also works without scripts.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "analyzer/analyze/analysis.hpp"
#include "support/result.hpp"

namespace ptxkit::report {

// The whole text of a source file that a PTX file names; nothing where the file is not available.
using SourceText = std::function<std::optional<std::string>(const std::string& ptx_path, const std::string& file)>;

// Scores, categories, findings with a filter, and for each kernel its PTX beside its source, its control flow, its
// shared memory and the bank conflicts of its first warp. Text from files is escaped. Of long kernels the page shows
// only the code around findings, and says so. The output is deterministic.
std::string to_html(std::span<const FileAnalysis> files, const AnalysisOptions& options, const SourceText& source_text);

// The same report, written as files are judged, part by part. It keeps in memory only the kernels that may still be
// shown in full, and their files; finished sections go to a spool. `options` and `source_text` must outlive it.
class HtmlReport {
 public:
  // The spool's file is created beside `path`.
  HtmlReport(const AnalysisOptions& options, const SourceText& source_text, const std::string& path);
  ~HtmlReport();
  HtmlReport(const HtmlReport&) = delete;
  HtmlReport& operator=(const HtmlReport&) = delete;

  // Moves the kernels out of `file`. Precondition: release_statements was not called on it.
  void add(const std::shared_ptr<FileAnalysis>& file);
  // Replaces the file at `path` by the page. Call it last.
  Result<void> save(const std::string& path);

 private:
  std::unique_ptr<class Page> page_;
};

}  // namespace ptxkit::report
