// A finding is a header line in the form that editors can jump to, the line of PTX with a caret, and one labelled line
// for each further fact. Findings follow the order of the file.
#include "analyzer/report/text.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "analyzer/analyze/place.hpp"
#include "analyzer/report/words.hpp"
#include "analyzer/rules/table.hpp"
#include "support/plural.hpp"
#include "support/printable.hpp"

namespace ptxkit::report {
namespace {

using rules::Finding;
using rules::RuleInfo;
using rules::Severity;
using rules::Verdict;

constexpr size_t kExcerptWidth = 160;

class TextDocument : public Document {
 public:
  explicit TextDocument(TextOptions options) : options_(std::move(options)) {}

  std::string add(const FileAnalysis& file) override {
    write_file(file);
    return without_commands(std::exchange(out_, {}));
  }

  std::string end(const Totals& totals) override {
    if (totals.file_count > 1) line("{}: exit {}", plural(totals.file_count, "file"), rules::exit_code(totals.status));
    return std::exchange(out_, {});
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  std::string paint(std::string_view code, std::string_view text) const {
    const std::string shown = printable(text);
    return options_.colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, shown) : shown;
  }

  static std::string_view colour_of(Severity severity) {
    switch (severity) {
      case Severity::critical:
        return "1;31";
      case Severity::high:
        return "31";
      case Severity::medium:
        return "33";
      case Severity::low:
        return "36";
      case Severity::info:
        break;
    }
    return "2";
  }

  std::string place(const FileAnalysis& file, ptx::Offset at) const {
    const ptx::Position position = file.parsed.module.position(at);
    return fmt::format("{}:{}:{}", printable_path(file.path), position.line, position.column);
  }

  void write_file(const FileAnalysis& file) {
    const std::string path = printable_path(file.path);
    if (file.error) {
      line("{}: not examined (exit {})", path, rules::exit_code(file.status));
      return;
    }
    if (!file.parsed.diagnostics.empty()) {
      out_ += rendered(file.parsed);
      line("{}: {}: does not parse, not examined further (exit {})", path,
           plural(file.parsed.diagnostics.size(), "error"), rules::exit_code(file.status));
      return;
    }
    for (const std::string& remark : file.remarks) line("{}", printable(remark));
    for (const KernelAnalysis& kernel : file.kernels) write_kernel(file, kernel);
    if (!file.is_last_part) return;
    if (file.kernels.empty()) {
      line("{}: {} skipped, none examined (exit {})", path, plural(file.skipped_kernel_count, "kernel"),
           rules::exit_code(file.status));
      return;
    }
    const size_t high_count = file.count(Severity::high);
    line("{}: score {:.1f}, {}{}, {} of {} rules ran (exit {})", path, file.score->percent(),
         plural(file.critical_count(), "critical finding"), high_count ? fmt::format(", {} high", high_count) : "",
         file.kernels.front().verdicts.size(), kRuleCount, rules::exit_code(file.status));
  }

  void write_kernel(const FileAnalysis& file, const KernelAnalysis& kernel) {
    struct Entry {
      const RuleInfo* rule;
      const Finding* finding;
    };
    std::vector<Entry> entries;
    size_t info_count = 0;
    for (const RuleVerdict& verdict : kernel.verdicts) {
      for (const Finding& finding : verdict.result.findings) {
        info_count += finding.severity == Severity::info;
        if (finding.severity != Severity::info || options_.verbose) entries.push_back({verdict.rule, &finding});
      }
    }
    std::ranges::stable_sort(entries, {}, [](const Entry& entry) { return entry.finding->at; });
    for (const Entry& entry : entries) write_finding(file, *entry.rule, *entry.finding);
    write_summary(kernel, options_.verbose ? 0 : info_count);
  }

  void write_finding(const FileAnalysis& file, const RuleInfo& rule, const Finding& finding) {
    line("{}: {} {} [{} {}, {}]", paint("1", place(file, finding.at)),
         paint(colour_of(finding.severity), fmt::format("{}:", text(finding.severity))), paint("1", finding.message),
         rule.id, rule.name, text(finding.tier));
    write_excerpt(file.parsed.module, finding.at);
    write_source(file, finding.location);
    if (!finding.path.empty()) {
      label("path", plural(finding.path.size(), "step"));
      for (const rules::Step& step : finding.path) {
        line("    {:>6} | {:<40}  {}", file.parsed.module.position(step.at).line,
             printable(statement_at(file.parsed.module, step.at)), paint("2", step.what));
      }
    }
    for (const std::string& assumption : finding.assumptions) label("assumes", assumption);
    if (finding.witness) label("witness", witness_text(*finding.witness));
    if (!finding.evidence.empty()) label("evidence", finding.evidence);
    if (finding.replay)
      label("replay", fmt::format("{}: {}", replay_word(finding.replay->outcome), finding.replay->what));
    if (!finding.command.empty()) label("repeat", finding.command);
    if (!finding.remedy.empty()) label("remedy", finding.remedy);
    out_ += '\n';
  }

  void label(std::string_view name, std::string_view what) {
    line("  {} {}", paint("1", fmt::format("{}:", name)), printable(what));
  }

  // Writes the line of PTX with a caret under the statement. A very long line is cut to a window around the statement.
  void write_excerpt(const ptx::Module& module, ptx::Offset at) {
    const ptx::Position position = module.position(at);
    std::string_view whole = module.line(position.line);
    size_t column = position.column - 1;
    if (column > whole.size()) return;
    if (column > kExcerptWidth / 2) {
      const size_t cut = column - kExcerptWidth / 2;
      whole.remove_prefix(cut);
      column -= cut;
    }
    whole = whole.substr(0, kExcerptWidth);
    const size_t length = std::min(statement_at(module, at).size(), whole.size() - column);
    line("{:>6} | {}", position.line, printable(whole));
    line("       | {}{}", std::string(column, ' '), paint("32", "^" + std::string(length > 1 ? length - 1 : 0, '~')));
  }

  void write_source(const FileAnalysis& file, ptx::LocationId location) {
    const std::vector<SourcePlace> places = source_places(file.parsed.module, location);
    for (size_t i = 0; i < places.size(); ++i) {
      const SourcePlace& place = places[i];
      label(i == 0 ? "source" : "inlined at", fmt::format("{}:{}:{}", place.file, place.line, place.column));
      const auto text = options_.source_line ? options_.source_line(file.path, place.file, place.line) : std::nullopt;
      if (text) line("    {:>6} | {}", place.line, printable(text->substr(0, kExcerptWidth)));
    }
  }

  void write_summary(const KernelAnalysis& kernel, size_t hidden_info_count) {
    const rules::Score& score = kernel.score;
    line("{}: score {:.1f} ({} of {} points{}): {} survived, {} refuted, {} undecided, {} n/a",
         paint("1", kernel.name.empty() ? "module" : "kernel " + kernel.name), score.percent(), score.earned,
         score.earned + score.lost, cap_text(score), kernel.count(Verdict::survived), kernel.count(Verdict::refuted),
         kernel.count(Verdict::undecided), kernel.count(Verdict::not_applicable));
    if (kernel.run) label("run", run_text(*kernel.run));
    for (const RuleVerdict& entry : kernel.verdicts) {
      const Verdict verdict = entry.result.verdict;
      if (!options_.verbose && (verdict == Verdict::survived || verdict == Verdict::not_applicable)) continue;
      rules::Score change;
      change.add(*entry.rule, entry.result);
      const std::string points = change.lost     ? fmt::format("-{}", change.lost)
                                 : change.earned ? fmt::format("+{}", change.earned)
                                                 : "";
      line("  {:<9} {:>2} {} {}{}{}", text(verdict), points, entry.rule->id, entry.rule->name,
           entry.result.basis.empty() ? "" : ": ", printable(entry.result.basis));
    }
    for (const RuleVerdict& entry : kernel.verdicts) {
      for (const Suppressed& suppressed : entry.suppressed) {
        line("  suppressed   {} {}: {}", entry.rule->id, entry.rule->name, printable(suppressed.reason));
      }
    }
    if (hidden_info_count) line("  {}, shown with --verbose", plural(hidden_info_count, "note"));
    out_ += '\n';
  }

  const TextOptions options_;
  std::string out_;
};

}  // namespace

std::unique_ptr<Document> text_document(TextOptions options) {
  return std::make_unique<TextDocument>(std::move(options));
}

}  // namespace ptxkit::report
