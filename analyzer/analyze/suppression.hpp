// Findings that people have decided to live with: comments beside the code, and a file with those of the past.
//
// A comment `// ptx-debug: allow F051, F081 -- reason`, or the same in `/* */`, speaks of the findings of these rules
// on its own line of PTX, on the next line with a statement if it stands alone, and of a whole function if that line
// begins it. In the C++ or CUDA source that `.loc` names it speaks of its own line and the next one. A suppressed
// finding stays in the report, with its reason; it costs no points and no exit code.
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

// The text of a line of a source file that a PTX file names, if it is at hand; may be empty.
using SourceLine =
    std::function<std::optional<std::string>(const std::string& ptx_path, const std::string& file, uint32_t line)>;

inline constexpr std::string_view kBaselineSchema = "ptxkit-baseline-1";

// Fingerprints of findings, with what they were about for whoever reads the file.
class Baseline {
 public:
  // Errors: not JSON, or not of this form.
  static Result<Baseline> read(std::string_view text, const std::string& path);

  // Whether the finding is in it; remembers that it was seen.
  bool take(const std::string& fingerprint);
  size_t size() const { return seen_.size(); }
  size_t unseen_count() const;

 private:
  std::map<std::string, bool> seen_;
};

// Of a file that comes in parts: settle() does for each part what suppress() does for a file; the remarks come with the
// last. `file` must stay where it is.
class Suppressions {
 public:
  Suppressions(FileAnalysis& file, Baseline& baseline, const SourceLine& source_line);
  ~Suppressions();
  Suppressions(const Suppressions&) = delete;
  Suppressions& operator=(const Suppressions&) = delete;

  void settle(const AnalysisOptions& options);

 private:
  FileAnalysis& file_;
  std::unique_ptr<class Suppressor> suppressor_;  // null where nothing is to be done
};

// Moves findings that comments or the baseline suppress, and scores again. Adds remarks on comments in the PTX that
// name no rule, give no reason or suppress nothing.
void suppress(FileAnalysis& file, const AnalysisOptions& options, Baseline& baseline, const SourceLine& source_line);

}  // namespace ptxkit::report
