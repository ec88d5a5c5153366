// See suppression.hpp.
#include "analyzer/analyze/suppression.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/analyze/fingerprint.hpp"
#include "analyzer/analyze/place.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/table.hpp"
#include "support/json.hpp"
#include "support/suggest.hpp"

namespace ptxkit::report {
namespace {

constexpr std::string_view kMark = "ptx-debug:";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// What a comment allows, and what is wrong with the comment.
struct Allowance {
  std::set<std::string, std::less<>> rules;
  std::string reason;
  std::vector<std::string> faults;
};

// Parses the words after the mark.
Allowance allowance_of(std::string_view words) {
  words = trimmed(words);
  Allowance allowance;
  const std::string verb(words.substr(0, words.find_first_of(" \t")));
  if (verb != "allow") {
    allowance.faults.push_back(fmt::format("expected 'allow F000 -- reason', found '{}'{}", verb,
                                           did_you_mean(verb, std::vector<std::string>{"allow"})));
    return allowance;
  }
  words.remove_prefix(verb.size());
  if (const size_t dashes = words.find("--"); dashes != words.npos) {
    allowance.reason = trimmed(words.substr(dashes + 2));
    words = words.substr(0, dashes);
  }
  while (!words.empty()) {
    const size_t end = std::min(words.find_first_of(", \t"), words.size());
    const std::string word(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
    if (trimmed(word).empty()) continue;
    if (rules::find_rule(word)) {
      allowance.rules.insert(word);
      continue;
    }
    std::vector<std::string> known;
    for (const rules::RuleInfo& rule : rules::catalogue()) known.emplace_back(rule.id);
    allowance.faults.push_back(fmt::format("'{}' is no rule{}", word, did_you_mean(word, known)));
  }
  if (allowance.rules.empty() && allowance.faults.empty()) allowance.faults.emplace_back("it names no rule");
  if (allowance.reason.empty()) {
    allowance.faults.emplace_back("it gives no reason: expected 'allow F000 -- reason'");
    allowance.rules.clear();
  }
  return allowance;
}

// The allowance in a line of source code; nothing where the line has no such comment.
std::optional<Allowance> allowance_in(std::string_view line) {
  const size_t line_comment = line.find("//"), comment = std::min(line_comment, line.find("/*"));
  const size_t mark = comment == line.npos ? line.npos : line.find(kMark, comment);
  if (mark == line.npos) return std::nullopt;
  const std::string_view words = line.substr(mark + kMark.size());
  return allowance_of(comment == line_comment ? words : words.substr(0, words.find("*/")));
}

// Whether a line, trimmed of blanks, is a single comment.
bool is_comment(std::string_view line) {
  return line.starts_with("//") || (line.starts_with("/*") && line.find("*/") + 2 == line.size());
}

// The comments of a text as offsets, and for each line, counted from 1, whether it has code.
struct Comments {
  std::vector<std::pair<size_t, size_t>> spans;
  std::vector<bool> has_code;
};

Comments comments_of(const ptx::Module& module) {
  const std::string_view text = module.text;
  Comments found;
  found.has_code.resize(module.line_starts.size() + 2);
  uint32_t line = 1;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text.substr(at).starts_with("//")) {
      end = std::min(text.find('\n', at), text.size());
      found.spans.emplace_back(at, end);
    } else if (text.substr(at).starts_with("/*")) {
      end = std::min(text.find("*/", at + 2), text.size());
      found.spans.emplace_back(at, end);
      end = std::min(end + 2, text.size());
    } else if (text[at] == '"') {
      end = std::min(text.find_first_of("\"\n", at + 1), text.size() - 1) + 1;
      found.has_code[line] = true;
    } else if (std::string_view(" \t\r\n").find(text[at]) == std::string_view::npos) {
      found.has_code[line] = true;
    }
    line += static_cast<uint32_t>(
        std::count(text.begin() + static_cast<ptrdiff_t>(at), text.begin() + static_cast<ptrdiff_t>(end), '\n'));
    at = end;
  }
  return found;
}

// A comment in the PTX, and the lines that it applies to.
struct PtxComment {
  uint32_t line = 0;
  uint32_t first = 0, last = 0;
  Allowance allowance;
  std::set<std::string, std::less<>> used;
};

}  // namespace

class Suppressor {
 public:
  Suppressor(FileAnalysis& file, Baseline& baseline, const SourceLine& source_line)
      : file_(file), module_(file.parsed.module), baseline_(baseline), source_line_(source_line) {
    if (module_.text.find(kMark) == module_.text.npos) return;
    const Comments comments = comments_of(module_);
    const Lines lines = lines_of(comments);
    for (const auto& [begin, end] : comments.spans) {
      const std::string_view span = module_.text.substr(begin, end - begin);
      for (size_t mark = span.find(kMark); mark < span.size(); mark = span.find(kMark, mark + 1)) {
        const std::string_view rest = span.substr(std::min(span.size(), mark + kMark.size()));
        const std::string_view words = rest.substr(0, rest.find('\n'));
        comments_.push_back(place(comments, lines, begin, begin + mark, end, allowance_of(words)));
      }
    }
    for (size_t i = 0; i < comments_.size(); ++i) {
      const PtxComment& comment = comments_[i];
      if (comment.first != comment.last) function_ends_[comment.first] = comment.last;
      auto& index = comment.first == comment.last ? by_line_ : by_function_;
      for (const std::string& rule : comment.allowance.rules) index.try_emplace({comment.first, rule}, i);
    }
  }

  // Applies the comments and the baseline to the kernels of the current part.
  void run() {
    for (KernelAnalysis& kernel : file_.kernels) {
      for (RuleVerdict& verdict : kernel.verdicts) settle(kernel, verdict);
    }
    if (comments_.empty()) return;
    for (const KernelAnalysis& kernel : file_.kernels) {
      for (const RuleVerdict& entry : kernel.verdicts) ran_.insert(entry.rule->id);
    }
    if (!file_.is_last_part) return;
    for (const PtxComment& comment : comments_) remark(comment);
  }

 private:
  // Computed once, because a text may have as many comments and functions as lines.
  struct Lines {
    std::vector<uint32_t> next_code;                 // for each line, the first line with code at or after it
    std::map<uint32_t, uint32_t> ends_of_functions;  // by the first line of each function with a body
  };

  Lines lines_of(const Comments& comments) const {
    Lines lines;
    const auto line_count = static_cast<uint32_t>(module_.line_starts.size());
    lines.next_code.assign(line_count + 2, line_count + 1);
    for (uint32_t line = line_count; line > 0; --line) {
      lines.next_code[line] = comments.has_code[line] ? line : lines.next_code[line + 1];
    }
    for (const ptx::Function& function : module_.functions) {
      if (!function.has_body) continue;
      lines.ends_of_functions[module_.position(function.at).line] = module_.position(function.end).line;
    }
    return lines;
  }

  PtxComment place(const Comments& comments, const Lines& lines, size_t begin, size_t mark, size_t end,
                   Allowance allowance) const {
    const auto line_of = [&](size_t at) { return module_.position(static_cast<ptx::Offset>(at)).line; };
    const uint32_t last = line_of(end);
    const uint32_t beside = comments.has_code[last] ? last : line_of(begin);
    PtxComment comment{line_of(mark), beside, beside, std::move(allowance), {}};
    if (comments.has_code[beside]) return comment;
    // The comment stands alone: it applies to the next line with code.
    comment.first = comment.last = lines.next_code[std::min<size_t>(last + 1, lines.next_code.size() - 1)];
    if (const auto function = lines.ends_of_functions.find(comment.first); function != lines.ends_of_functions.end())
      comment.last = function->second;
    return comment;
  }

  void settle(const KernelAnalysis& kernel, RuleVerdict& verdict) {
    if (verdict.result.findings.empty()) return;
    std::vector<rules::Finding> kept;
    std::vector<Suppressed> suppressed;
    for (const AnyFinding& each : all_findings(module_, kernel, verdict)) {
      const bool is_known = baseline_.match(each.fingerprint);
      if (auto reason = reason_for(verdict.rule->id, *each.finding)) {
        suppressed.push_back({Suppressed::By::comment, *each.finding, std::move(*reason)});
      } else if (is_known) {
        suppressed.push_back({Suppressed::By::baseline, *each.finding, "in the baseline"});
      } else {
        kept.push_back(*each.finding);
      }
    }
    verdict.suppressed = std::move(suppressed);
    verdict.result.findings = std::move(kept);
    if (verdict.suppressed.empty()) return;
    const bool charges = std::ranges::any_of(verdict.result.findings, [](const rules::Finding& finding) {
      return finding.severity != rules::Severity::info;
    });
    if (charges) return;
    // No finding above info is left: the rule drops out of the score.
    verdict.result.verdict = rules::Verdict::not_applicable;
    verdict.result.loses_points = false;
    verdict.result.basis = fmt::format("{} suppressed", verdict.suppressed.size());
  }

  std::optional<std::string> reason_for(std::string_view rule, const rules::Finding& finding) {
    const uint32_t line = module_.position(finding.at).line;
    if (PtxComment* const comment = comment_for(rule, line)) {
      comment->used.emplace(rule);
      return comment->allowance.reason;
    }
    if (!source_line_) return std::nullopt;
    for (const SourcePlace& source : source_places(module_, finding.location)) {
      for (const uint32_t at : {source.line, source.line - 1}) {
        const auto text = at ? source_line_(file_.path, source.file, at) : std::nullopt;
        const auto allowance = text ? allowance_in(*text) : std::nullopt;
        // The line before counts only if it is a comment alone.
        const bool is_here = at == source.line || (text && is_comment(trimmed(*text)));
        if (allowance && is_here && allowance->rules.contains(rule)) return allowance->reason;
      }
    }
    return std::nullopt;
  }

  // The first comment that applies to the rule and the line; null where there is none.
  PtxComment* comment_for(std::string_view rule, uint32_t line) {
    size_t first = comments_.size();
    const auto look = [&](const auto& index, uint32_t at) {
      if (const auto found = index.find({at, std::string(rule)}); found != index.end())
        first = std::min(first, found->second);
    };
    look(by_line_, line);
    // Functions do not overlap: only the last one that begins before the line can contain it.
    if (auto function = function_ends_.upper_bound(line); function != function_ends_.begin()) {
      --function;
      if (line <= function->second) look(by_function_, function->first);
    }
    return first < comments_.size() ? &comments_[first] : nullptr;
  }

  void remark(const PtxComment& comment) {
    const auto say = [&](std::string_view what) {
      file_.remarks.push_back(fmt::format("{}:{}: allow comment: {}", file_.path, comment.line, what));
    };
    for (const std::string& fault : comment.allowance.faults) say(fault);
    for (const std::string& rule : comment.allowance.rules) {
      // A comment for a rule that did not run is not reported as unused.
      if (ran_.contains(rule) && !comment.used.contains(rule))
        say(fmt::format("{} has nothing to suppress here", rule));
    }
  }

  FileAnalysis& file_;
  const ptx::Module& module_;
  Baseline& baseline_;
  SourceLine source_line_;
  std::vector<PtxComment> comments_;
  std::set<std::string_view> ran_;  // rules
  // The first comment for each rule and line, or first line of a function.
  std::map<std::pair<uint32_t, std::string>, size_t> by_line_, by_function_;
  std::map<uint32_t, uint32_t> function_ends_;  // last line of each of these functions, by its first line
};

Result<Baseline> Baseline::read(std::string_view text, const std::string& path) {
  const auto json = Json::parse(text, nullptr, false);
  const auto wrong = [&](const char* what) {
    return fail(fmt::format("baseline: {}", what), path, "write one with --write-baseline");
  };
  if (json.is_discarded()) return wrong("not JSON");
  if (!json.is_object() || !json.contains("schema") || json["schema"] != kBaselineSchema)
    return wrong("expected the schema ptxkit-baseline-1");
  const auto findings = json.find("findings");
  if (findings == json.end() || !findings->is_array()) return wrong("'findings' is missing");
  Baseline baseline;
  for (const auto& finding : *findings) {
    if (!finding.is_object() || !finding.contains("fingerprint") || !finding["fingerprint"].is_string()) {
      return wrong("a finding has no 'fingerprint'");
    }
    baseline.seen_.emplace(finding["fingerprint"].get<std::string>(), false);
  }
  return baseline;
}

bool Baseline::match(const std::string& fingerprint) {
  const auto found = seen_.find(fingerprint);
  if (found == seen_.end()) return false;
  found->second = true;
  return true;
}

size_t Baseline::unmatched_count() const {
  return static_cast<size_t>(std::ranges::count_if(seen_, [](const auto& entry) { return !entry.second; }));
}

Suppressions::Suppressions(FileAnalysis& file, Baseline& baseline, const SourceLine& source_line) : file_(file) {
  if (!file.error && file.parsed.diagnostics.empty())
    suppressor_ = std::make_unique<Suppressor>(file, baseline, source_line);
}

Suppressions::~Suppressions() = default;

void Suppressions::settle(const AnalysisOptions& options) {
  if (!suppressor_) return;
  suppressor_->run();
  if (!file_.kernels.empty()) rescore(file_, options);
}

void suppress(FileAnalysis& file, const AnalysisOptions& options, Baseline& baseline, const SourceLine& source_line) {
  Suppressions(file, baseline, source_line).settle(options);
}

}  // namespace ptxkit::report
