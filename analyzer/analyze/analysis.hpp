// One PTX file taken through the catalogue: parsed, every kernel examined by every rule asked for, scored.
//
// Two kinds of rules meet here. Those about the text itself (F002 to F020) are judged by the front end's diagnostics:
// none of a rule's kinds means that it survived. Those about behaviour are functions over one
// kernel (rules/analyze.hpp). A rule that is neither has no verdict at all: it neither earns nor loses anything, and
// reports say how many of the catalogue ran.
//
// A text with diagnostics is not examined further: what a rule would say of half a kernel is worth nothing. Its rules
// are refuted or undecided, and it has no score.
#pragma once

#include <array>
#include <bitset>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/fail_on.hpp"
#include "analyzer/rules/score.hpp"
#include "support/result.hpp"

namespace ptxkit::report {

// Of the catalogue (rules/rules.def).
inline constexpr size_t kRuleCount = 0
#define RULE(...) +1
#define FRONT_END_RULE(...) +1
#include "analyzer/rules/rules.def"
    ;

// A set of rules of the catalogue; bit 0 is F001.
using RuleSet = std::bitset<kRuleCount>;

size_t index_of(const rules::RuleInfo& rule);
RuleSet all_rules();
RuleSet important_rules();    // those whose severity is critical or high: what runs without --falsify
RuleSet implemented_rules();  // by a function, or by the front end
RuleSet front_end_rules();    // those that the front end decides: silence of its diagnostics proves them

struct AnalysisOptions {
  rules::Options rules;
  RuleSet wanted = all_rules();
  std::function<bool(std::string_view kernel)> wants_kernel;  // empty: every kernel
  std::optional<double> minimum_percent;                      // --min-score
  std::optional<rules::FailOn> fail_on;                       // --fail-on
};

// A finding that does not count, and why: a comment in the text or its source, or an entry of the baseline file.
struct Suppressed {
  enum class By : uint8_t { comment, baseline } by = By::comment;
  rules::Finding finding;
  std::string reason;
};

struct RuleVerdict {
  const rules::RuleInfo* rule;
  rules::RuleResult result;
  std::vector<Suppressed> suppressed = {};  // taken out of result.findings (suppression.hpp)
};

// An entry with a body, or, where a module has none, the module as a whole (`function` is ptx::kNone).
struct KernelAnalysis {
  std::string name;  // empty for a module as a whole
  ptx::FunctionId function = ptx::kNone;
  std::vector<RuleVerdict> verdicts;  // in the order of the catalogue
  rules::Score score;

  size_t count(rules::Verdict verdict) const;
  size_t count(rules::Severity severity) const;  // findings
};

struct FileAnalysis {
  std::string path;
  std::optional<Error> error;  // the file could not be read; nothing below is set
  std::string xxh128;          // of the text
  ptx::ParseResult parsed;
  std::vector<KernelAnalysis> kernels;  // in program order
  std::optional<rules::Score> score;    // of the worst kernel; nothing where the text does not parse
  size_t skipped_kernel_count = 0;      // that `wants_kernel` refused
  std::vector<std::string> remarks;     // on comments that suppress nothing, "k.ptx:12: ..."
  rules::Status status = rules::Status::good;

  // One with very many kernels comes in parts, so that they are never all in memory: `kernels` and `remarks` are those
  // of a part; score, status and counts those of all parts so far.
  bool is_first_part = true, is_last_part = true;
  std::array<size_t, 5> earlier_counts{}, known_counts{};  // findings by severity, of the parts before; with this one
  std::optional<rules::Score> earlier_score;
  rules::Status earlier_status = rules::Status::good;
  ptx::FunctionId next_function = 0;

  size_t count(rules::Severity severity) const;  // findings of all kernels
  size_t critical_count() const { return count(rules::Severity::critical); }
};

inline constexpr size_t kAllKernels = ~size_t{0};

// The whole file, or its first part where it has more kernels than `most_kernels`.
FileAnalysis analyze(std::string text, std::string path, const AnalysisOptions& options,
                     size_t most_kernels = kAllKernels);
// Puts the next part in place of the last; false, and nothing happens, where that was the last one.
bool next_part(FileAnalysis& file, const AnalysisOptions& options, size_t most_kernels);
// Score and status again, after verdicts have changed. Precondition: the text parses and a kernel was examined.
void rescore(FileAnalysis& file, const AnalysisOptions& options);
FileAnalysis unreadable(std::string path, Error error);
// Gives back the memory of what only rules and pictures look at: the statements of every function. What stays is the
// text, declarations and findings, of which text, JSON, SARIF and annotations are made.
void release_statements(FileAnalysis& file);

// What a report says of its files together.
struct Totals {
  size_t file_count = 0;
  rules::Status status = rules::Status::good;  // the strongest of all files
  RuleSet ran;                                 // rules with a verdict in any file

  void add(const FileAnalysis& file);
};

}  // namespace ptxkit::report
