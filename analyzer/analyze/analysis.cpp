// Runs the rules in the order of the catalogue; analysis.hpp says which rules have a verdict.
#include "analyzer/analyze/analysis.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "analyzer/analyze/identity.hpp"
#include "analyzer/ptx/levels.hpp"
#include "analyzer/rules/diagnostics.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/run_rule.hpp"
#include "analyzer/rules/table.hpp"
#include "support/check.hpp"

namespace ptxkit::report {
namespace {

using rules::RuleInfo;
using rules::RuleResult;
using rules::Severity;
using rules::Verdict;

RuleSet function_rules() {
  RuleSet set;
  for (const rules::Implementation& implementation : rules::implementations()) {
    const RuleInfo* rule = rules::find_rule(implementation.id);
    PTXKIT_CHECK(rule != nullptr, "an implemented rule is not in the catalogue");
    set.set(index_of(*rule));
  }
  return set;
}

// The result of a rule about the text, from the diagnostics of its kinds.
RuleResult front_end_result(const RuleInfo& rule, const ptx::ParseResult& parsed) {
  const std::vector<ptx::Diagnostic>& diagnostics = parsed.diagnostics;
  RuleResult result;
  for (const ptx::Diagnostic& diagnostic : diagnostics) {
    if (!rules::counts_for(rule.id, parsed.module, diagnostic)) continue;
    rules::Finding finding;
    finding.severity = rule.severity;
    finding.tier = rules::Tier::proved;
    finding.at = diagnostic.at;
    finding.message = diagnostic.message;
    result.findings.push_back(std::move(finding));
  }
  if (!result.findings.empty()) {
    result.verdict = Verdict::refuted;
    result.loses_points = true;
    result.basis = "the front end refuses the text";
  } else if (diagnostics.empty()) {
    result.verdict = Verdict::survived;
    result.basis = "the front end read the whole text and found nothing";
    const ptx::Module& module = parsed.module;
    if (rule.id == "F002" && ptx::is_later_version(module.version_major, module.version_minor)) {
      result.basis = fmt::format("'.version {}.{}' is later than {}, by which the text was read", module.version_major,
                                 module.version_minor, ptx::kLastVersion);
    }
  } else {
    result.verdict = Verdict::undecided;
    result.basis = "the text was not read as a whole, because of other mistakes in it";
  }
  return result;
}

KernelAnalysis examine(const ptx::ParseResult& parsed, ptx::FunctionId function, const AnalysisOptions& options) {
  static const RuleSet with_function = function_rules();
  static const RuleSet with_diagnostics = front_end_rules();
  KernelAnalysis kernel;
  kernel.function = function;
  if (function != ptx::kNone) kernel.name = parsed.module.functions[function].name;
  rules::Context context(parsed.module, function, parsed.diagnostics, options.rules);
  for (const RuleInfo& rule : rules::catalogue()) {
    const size_t index = index_of(rule);
    if (!options.wanted[index]) continue;
    if (options.is_cancelled && options.is_cancelled()) break;
    const bool diagnosed = std::ranges::any_of(parsed.diagnostics, [&](const ptx::Diagnostic& diagnostic) {
      return rules::counts_for(rule.id, parsed.module, diagnostic);
    });
    if (with_diagnostics[index] || diagnosed) {
      kernel.verdicts.push_back({&rule, front_end_result(rule, parsed)});
    } else if (with_function[index] && parsed.diagnostics.empty()) {
      kernel.verdicts.push_back({&rule, rules::run_rule(rule.id, context)});
    } else {
      continue;
    }
    kernel.score.add(rule, kernel.verdicts.back().result);
  }
  return kernel;
}

}  // namespace

size_t index_of(const RuleInfo& rule) { return static_cast<size_t>(&rule - rules::catalogue().data()); }

RuleSet all_rules() { return RuleSet().set(); }

RuleSet important_rules() {
  RuleSet set;
  for (const RuleInfo& rule : rules::catalogue()) set.set(index_of(rule), rule.severity >= Severity::high);
  return set;
}

RuleSet front_end_rules() {
  static constexpr ptx::DiagnosticKind kKinds[] = {
#define PTX_DIAGNOSTIC(id, rule) ptx::DiagnosticKind::id,
#include "analyzer/ptx/diagnostics.def"
#undef PTX_DIAGNOSTIC
  };
  RuleSet set;
  for (const ptx::DiagnosticKind kind : kKinds) {
    const RuleInfo* rule = rules::find_rule(ptx::rule(kind));
    PTXKIT_CHECK(rule != nullptr, "a diagnostic belongs to no rule of the catalogue");
    // Beyond syntax and types the front end checks a rule only in part: for example the space of a variable named in an
    // address, but not of one held in a register. There a diagnostic refutes the rule, but its absence proves nothing.
    if (rule->category == "Syntax" || rule->category == "Types") set.set(index_of(*rule));
  }
  return set & ~function_rules();
}

RuleSet implemented_rules() { return function_rules() | front_end_rules(); }

size_t KernelAnalysis::count(Verdict verdict) const {
  return static_cast<size_t>(
      std::ranges::count_if(verdicts, [&](const RuleVerdict& entry) { return entry.result.verdict == verdict; }));
}

size_t KernelAnalysis::count(Severity severity) const {
  size_t total = 0;
  for (const RuleVerdict& entry : verdicts) {
    total += static_cast<size_t>(std::ranges::count(entry.result.findings, severity, &rules::Finding::severity));
  }
  return total;
}

size_t FileAnalysis::count(Severity severity) const {
  size_t total = earlier_counts[static_cast<size_t>(severity)];
  for (const KernelAnalysis& kernel : kernels) total += kernel.count(severity);
  return total;
}

namespace {

// A part ends with the kernel that reaches as many: kernels that call one function repeat its findings. A finding takes
// up to 25 KB of a report while it is written.
constexpr size_t kMostFindingsOfPart = 2000;

size_t finding_count(const KernelAnalysis& kernel) {
  size_t count = 0;
  for (const RuleVerdict& verdict : kernel.verdicts) count += verdict.result.findings.size();
  return count;
}

// Examines the next wanted kernels, up to `most_kernels`, and sets is_last_part.
void examine_part(FileAnalysis& file, const AnalysisOptions& options, size_t most_kernels) {
  const std::vector<ptx::Function>& functions = file.parsed.module.functions;
  file.is_last_part = true;
  size_t findings = 0;
  for (; file.next_function < functions.size(); ++file.next_function) {
    const ptx::Function& function = functions[file.next_function];
    if (!function.is_entry || !function.has_body) continue;
    if (options.wants_kernel && !options.wants_kernel(function.name)) {
      ++file.skipped_kernel_count;
      continue;
    }
    if (file.kernels.size() == most_kernels || (most_kernels != kAllKernels && findings >= kMostFindingsOfPart)) {
      file.is_last_part = false;
      break;
    }
    file.kernels.push_back(examine(file.parsed, file.next_function, options));
    findings += finding_count(file.kernels.back());
  }
  rescore(file, options);
}

}  // namespace

FileAnalysis analyze(std::string text, std::string path, const AnalysisOptions& options, size_t most_kernels) {
  FileAnalysis file;
  file.path = path;
  file.xxh128 = xxh128_hex(text);
  file.parsed = ptx::parse(std::move(text), std::move(path));
  if (!file.parsed.diagnostics.empty()) {
    file.kernels.push_back(examine(file.parsed, ptx::kNone, options));
    file.status = rules::Status::unparsable;
    return file;
  }
  const bool has_entry = std::ranges::any_of(file.parsed.module.functions,
                                             [](const ptx::Function& each) { return each.is_entry && each.has_body; });
  if (has_entry) {
    examine_part(file, options, most_kernels);
  } else {
    file.kernels.push_back(examine(file.parsed, ptx::kNone, options));
    rescore(file, options);
  }
  return file;
}

namespace {

rules::Status status_of(const FileAnalysis& file, const AnalysisOptions& options) {
  const rules::Score score = file.score.value_or(rules::Score{});
  if (!options.fail_on) return rules::status_of(score, file.critical_count() > 0, options.minimum_percent);
  std::vector<const rules::Finding*> findings;
  for (const KernelAnalysis& kernel : file.kernels)
    for (const RuleVerdict& entry : kernel.verdicts)
      for (const rules::Finding& finding : entry.result.findings) findings.push_back(&finding);
  return rules::status_of(*options.fail_on, findings, score, options.minimum_percent);
}

}  // namespace

bool next_part(FileAnalysis& file, const AnalysisOptions& options, size_t most_kernels) {
  if (file.is_last_part) return false;
  file.earlier_counts = file.known_counts;  // not count(): the kernels of the part may have been moved away
  file.earlier_status = file.status;
  file.earlier_score = file.score;
  file.is_first_part = false;
  file.kernels.clear();
  file.remarks.clear();
  examine_part(file, options, most_kernels);
  return true;
}

void rescore(FileAnalysis& file, const AnalysisOptions& options) {
  std::vector<rules::Score> scores;
  scores.reserve(file.kernels.size() + 1);
  if (file.earlier_score) scores.push_back(*file.earlier_score);
  for (KernelAnalysis& kernel : file.kernels) {
    kernel.score = {};
    for (const RuleVerdict& entry : kernel.verdicts) kernel.score.add(*entry.rule, entry.result);
    scores.push_back(kernel.score);
  }
  file.score = rules::worst(scores);
  for (size_t i = 0; i < file.known_counts.size(); ++i) file.known_counts[i] = file.count(static_cast<Severity>(i));
  file.status = std::max(file.earlier_status, status_of(file, options));
}

FileAnalysis unreadable(std::string path, Error error) {
  FileAnalysis file;
  file.path = std::move(path);
  file.error = std::move(error);
  file.status = rules::Status::unreadable;
  return file;
}

void release_statements(FileAnalysis& file) {
  for (ptx::Function& function : file.parsed.module.functions) {
    // swap() frees the memory; assigning {} keeps the capacity.
    const auto release = [](auto& items) { std::remove_reference_t<decltype(items)>().swap(items); };
    release(function.registers);
    release(function.labels);
    release(function.tables);
    release(function.instructions);
    release(function.operand_pool);
    release(function.modifier_pool);
    release(function.items);
  }
}

void Totals::add(const FileAnalysis& file) {
  file_count += file.is_last_part;
  status = std::max(status, file.status);
  for (const KernelAnalysis& kernel : file.kernels) {
    for (const RuleVerdict& entry : kernel.verdicts) ran.set(index_of(*entry.rule));
  }
}

}  // namespace ptxkit::report
