// Findings that a user has accepted: by comments in the code, or by a baseline file of earlier findings.
//
// A comment `// ptx-debug: allow F051, F081 -- reason`, or the same in `/* */`, applies to findings of these rules on
// its own line of PTX; if it stands alone, to the next line with a statement; and if that line begins a function, to
// the whole function. In the C++ or CUDA source that `.loc` names it applies to its own line and the next one. A
// suppressed finding stays in the report with its reason, and does not affect score or exit code.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "analyzer/analyze/analysis.hpp"
#include "support/result.hpp"

namespace ptxkit::report {

// Returns a line of a source file that a PTX file names; nothing where it is not available. May be empty.
using SourceLine =
    std::function<std::optional<std::string>(const std::string& ptx_path, const std::string& file, uint32_t line)>;

inline constexpr std::string_view kBaselineSchema = "ptxkit-baseline-1";

// The fingerprints of a baseline file. Its other fields describe the findings for readers.
class Baseline {
 public:
  // Errors: not JSON, or not of this form.
  static Result<Baseline> read(std::string_view text, const std::string& path);

  // Whether the finding is in the baseline; marks it as seen.
  bool match(const std::string& fingerprint);
  size_t size() const { return seen_.size(); }
  size_t unmatched_count() const;

 private:
  std::map<std::string, bool> seen_;
};

// For a file in parts: settle() does for one part what suppress() does for a file. The remarks are added with the last
// part. Keeps references to the arguments of the constructor.
class Suppressions {
 public:
  Suppressions(FileAnalysis& file, Baseline& baseline, const SourceLine& source_line);
  ~Suppressions();
  Suppressions(const Suppressions&) = delete;
  Suppressions& operator=(const Suppressions&) = delete;

  void settle(const AnalysisOptions& options);

 private:
  FileAnalysis& file_;
  std::unique_ptr<class Suppressor> suppressor_;  // null where there is nothing to do
};

// Moves findings that comments or the baseline suppress out of the results, and recomputes the score. Adds remarks on
// comments in the PTX that name no rule, give no reason or suppress nothing.
void suppress(FileAnalysis& file, const AnalysisOptions& options, Baseline& baseline, const SourceLine& source_line);

}  // namespace ptxkit::report
