// Checks one PTX file against the catalogue: parses it, runs the chosen rules on every kernel, and scores it.
//
// There are two kinds of rules. Rules about the text (F002 to F020) are decided by the front end's diagnostics: a
// rule survives where none of its diagnostics occur. Rules about behaviour are functions over one kernel
// (rules/run_rule.hpp). A rule that is neither has no verdict and does not affect the score; reports state how many
// rules of the catalogue ran.
//
// A text with diagnostics is not examined further, because the tree is incomplete. Its rules are refuted or
// undecided, and it has no score.
#pragma once

#include <array>
#include <bitset>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/fail_on.hpp"
#include "analyzer/rules/score.hpp"
#include "support/result.hpp"

namespace ptxkit::report {

// Number of rules in the catalogue (rules/rules.def).
inline constexpr size_t kRuleCount = 0
#define RULE(...) +1
#define FRONT_END_RULE(...) +1
#include "analyzer/rules/rules.def"
    ;

// A set of rules of the catalogue; bit 0 is F001.
using RuleSet = std::bitset<kRuleCount>;

size_t index_of(const rules::RuleInfo& rule);
RuleSet all_rules();
RuleSet important_rules();    // rules of critical or high severity: the default without --falsify
RuleSet implemented_rules();  // decided by a function or by the front end
RuleSet front_end_rules();    // decided by the front end: they survive without diagnostics

struct AnalysisOptions {
  rules::Options rules;
  RuleSet wanted = all_rules();
  std::function<bool(std::string_view kernel)> wants_kernel;  // empty: every kernel
  std::function<bool()> is_cancelled;     // asked before each rule: where true, no further rule runs; empty: never
  std::optional<double> minimum_percent;  // --min-score
  std::optional<rules::FailOn> fail_on;   // --fail-on
};

// A finding that does not count, and the reason: a comment in the PTX or its source, or an entry of the baseline file.
struct Suppressed {
  enum class By : uint8_t { comment, baseline } by = By::comment;
  rules::Finding finding;
  std::string reason;
};

struct RuleVerdict {
  const rules::RuleInfo* rule;
  rules::RuleResult result;
  std::vector<Suppressed> suppressed = {};  // removed from result.findings (suppression.hpp)
};

// An entry with a body. A module without one is examined as a whole (`function` is ptx::kNone).
struct KernelAnalysis {
  std::string name;  // empty for a module as a whole
  ptx::FunctionId function = ptx::kNone;
  std::vector<RuleVerdict> verdicts;  // in the order of the catalogue
  rules::Score score;
  std::optional<rules::ObservedRun> run;  // set where the kernel was to be run

  size_t count(rules::Verdict verdict) const;
  size_t count(rules::Severity severity) const;  // findings
};

struct FileAnalysis {
  std::string path;
  std::optional<Error> error;  // set where the file could not be read; then only `path` and `status` are set too
  std::string xxh128;          // of the text
  ptx::ParseResult parsed;
  std::vector<KernelAnalysis> kernels;  // in program order
  std::optional<rules::Score> score;    // of the worst kernel; nothing where the text does not parse
  size_t skipped_kernel_count = 0;      // excluded by `wants_kernel`
  std::vector<std::string> remarks;     // on comments that suppress nothing, "k.ptx:12: ..."
  rules::Status status = rules::Status::good;

  // A file with very many kernels is examined in parts, which bounds memory. `kernels` and `remarks` are those of the
  // current part; score, status and counts cover all parts so far.
  bool is_first_part = true, is_last_part = true;
  // Findings by severity: of the earlier parts; including this part.
  std::array<size_t, 5> earlier_counts{}, known_counts{};
  std::optional<rules::Score> earlier_score;
  rules::Status earlier_status = rules::Status::good;
  ptx::FunctionId next_function = 0;

  size_t count(rules::Severity severity) const;  // findings of all kernels
  size_t critical_count() const { return count(rules::Severity::critical); }
};

inline constexpr size_t kAllKernels = ~size_t{0};

// Examines the whole file, or its first part where it has more than `most_kernels` kernels or very many findings.
FileAnalysis analyze(std::string text, std::string path, const AnalysisOptions& options,
                     size_t most_kernels = kAllKernels);
// Replaces the current part by the next one. Returns false and does nothing if the current part is the last.
bool next_part(FileAnalysis& file, const AnalysisOptions& options, size_t most_kernels);
// Recomputes score and status after verdicts have changed. Precondition: the text parses and a kernel was examined.
void rescore(FileAnalysis& file, const AnalysisOptions& options);
// The analysis of a file that could not be read.
FileAnalysis unreadable(std::string path, Error error);
// Frees the statements of every function, which only rules and pictures need. Text, declarations and findings stay; the
// text, JSON, SARIF and annotation reports need no more.
void release_statements(FileAnalysis& file);

// The totals over all files of a report.
struct Totals {
  size_t file_count = 0;
  rules::Status status = rules::Status::good;  // the worst of all files
  RuleSet ran;                                 // rules that have a verdict in any file

  void add(const FileAnalysis& file);
};

}  // namespace ptxkit::report
