// The frame of the page, the overview and the findings. Style and script are files in page/.
#include "analyzer/report/html.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/analyze/fingerprint.hpp"
#include "analyzer/analyze/identity.hpp"
#include "analyzer/analyze/place.hpp"
#include "analyzer/evidence/evidence.hpp"
#include "analyzer/report/html_parts.hpp"
#include "analyzer/report/words.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/score.hpp"
#include "analyzer/rules/table.hpp"
#include "support/check.hpp"
#include "support/embedded.hpp"
#include "support/plural.hpp"
#include "support/printable.hpp"
#include "support/spool.hpp"

namespace ptxkit::report {

extern const EmbeddedFile page_files[];
extern const size_t page_files_count;

namespace {

using rules::Severity;
using rules::Verdict;

std::string_view page_file(std::string_view name) {
  const auto found = std::ranges::find(page_files, page_files + page_files_count, name, &EmbeddedFile::name);
  return found->content;
}

std::string name_of(const KernelAnalysis& kernel) { return kernel.name.empty() ? "module" : kernel.name; }

// A report with more kernels than this shows code only of kernels with a finding above info, and of only this many of
// them the whole code with pictures.
constexpr size_t kManyKernels = 50;

bool has_finding_above_info(const KernelAnalysis& kernel) {
  return std::ranges::any_of(kernel.verdicts, [](const RuleVerdict& verdict) {
    return std::ranges::any_of(verdict.result.findings,
                               [](const rules::Finding& finding) { return finding.severity != Severity::info; });
  });
}

}  // namespace

// Builds the page. Finished sections are stored in a spool in any order; write() puts them in page order. The kernels
// to show in full are known only at the end.
class Page {
 public:
  Page(const AnalysisOptions& options, const SourceText& source_text, const std::string& path)
      : options_(options), source_text_(source_text), spool_(path) {}

  // Called before each add(), while the file still has its kernels.
  void count(const FileAnalysis& file) { totals_.add(file); }

  // `kernels` are those of the file, or copies.
  void add(const std::shared_ptr<const FileAnalysis>& file, std::vector<KernelAnalysis> kernels) {
    if (title_.empty()) title_ = file->path;
    if (file->error) {
      overview_ += fmt::format("<tr><td>{}<td colspan=\"6\" class=\"fault\">{}\n", for_html(file->path),
                               for_html(file->error->message()));
      return;
    }
    if (!file->parsed.diagnostics.empty()) {
      store(new_piece(), unparsable_html(*file));
      return;
    }
    std::string remarks;
    for (const std::string& remark : file->remarks)
      remarks += fmt::format("<p class=\"remark\">{}</p>\n", for_html(remark));
    if (!remarks.empty()) store(new_piece(), remarks);
    for (KernelAnalysis& kernel : kernels) {
      const unsigned number = next_++;
      add_to_overview(*file, kernel, fmt::format("k{}", number));
      const bool has_findings = has_finding_above_info(kernel);
      open_.push_back({file, std::move(kernel), number, new_piece(), has_findings});
      if (++kernel_count_ > kManyKernels) close_some();
    }
  }

  bool write(const std::function<void(std::string_view)>& take) {
    for (const PendingKernel& each : open_) store(each.piece, kernel_html(each, false));
    const size_t whole_count = open_.size();
    open_.clear();
    // The Content-Security-Policy enforces what the page already obeys: it refers to nothing outside.
    take(fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
        "<title>ptx-debug report: {}</title>\n<style>\n{}</style>\n</head>\n<body>\n",
        for_html(totals_.file_count == 1 ? title_ : plural(totals_.file_count, "file")), page_file("report.css")));
    take(header(whole_count) + toolbar());
    take(overview_);
    take("</tbody></table>\n");
    for (const Piece& piece : pieces_) {
      if (!spool_.read(piece.from, piece.bytes, take)) return false;
    }
    take(fmt::format("<script>\n{}</script>\n</body>\n</html>\n", page_file("report.js")));
    return true;
  }

 private:
  // A section of the page, in the spool.
  struct Piece {
    uint64_t from = 0, bytes = 0;
  };
  // A kernel that is shown in full unless enough worse ones follow.
  struct PendingKernel {
    std::shared_ptr<const FileAnalysis> file;
    KernelAnalysis kernel;
    unsigned number;
    size_t piece;
    bool has_findings;
  };

  bool is_large() const { return kernel_count_ > kManyKernels; }

  size_t new_piece() {
    pieces_.emplace_back();
    return pieces_.size() - 1;
  }

  void store(size_t piece, std::string_view text) {
    pieces_[piece] = {spool_.size(), text.size()};
    spool_.append(text);
  }

  // In a large report, writes kernels without a charge without their code, and keeps only the worst kernels open.
  void close_some() {
    const auto close = [&](const PendingKernel& each) { store(each.piece, kernel_html(each, true)); };
    std::erase_if(open_, [&](const PendingKernel& each) {
      if (!each.has_findings) close(each);
      return !each.has_findings;
    });
    while (open_.size() > kManyKernels) {
      // Among equal kernels the first ones stay open.
      const auto best = std::ranges::min_element(open_, [](const PendingKernel& x, const PendingKernel& y) {
        return y.kernel.score.worse_than(x.kernel.score) ||
               (!x.kernel.score.worse_than(y.kernel.score) && x.number > y.number);
      });
      close(*best);
      open_.erase(best);
    }
  }

  std::string header(size_t whole_count) const {
    std::string out = "<header><h1>ptx-debug report</h1>\n<p>";
    out += fmt::format("version {}, profile {}, {} of {} rules ran, exit code {}", tool_version(),
                       options_.rules.profile == rules::Profile::pattern ? "pattern" : "root-cause",
                       totals_.ran.count(), kRuleCount, rules::exit_code(totals_.status));
    if (options_.minimum_percent) out += fmt::format(", least score {}", *options_.minimum_percent);
    if (is_large())
      out += fmt::format("; code only of kernels with a finding above info, whole and with pictures of the {} worst",
                         whole_count);
    if (options_.rules.evidence) {
      for (const rules::EvidenceFile& file : options_.rules.evidence->files)
        out += "; evidence " + for_html(description(file));
    }
    return out + "</p></header>\n";
  }

  std::string toolbar() const {
    const auto options = [](const std::map<std::string, size_t>& counts) {
      std::string all = "<option value=\"\">all</option>";
      for (const auto& [name, count] : counts) {
        all += fmt::format("<option value=\"{0}\">{0} ({1})</option>", for_html(name), count);
      }
      return all;
    };
    return fmt::format(
        "<form id=\"filter\"><label>rule <select name=\"rule\">{}</select></label>\n"
        "<label>kernel <select name=\"kernel\">{}</select></label>\n"
        "<label>from <select name=\"severity\"><option value=\"0\">info</option><option value=\"1\">low</option>"
        "<option value=\"2\">medium</option><option value=\"3\">high</option><option value=\"4\">critical</option>"
        "</select></label>\n<label>text <input name=\"text\" type=\"search\"></label>\n"
        "<label><input name=\"suppressed\" type=\"checkbox\" checked> suppressed</label>\n"
        "<output>{}</output></form>\n"
        "<table class=\"overview\"><thead><tr><th>file<th>kernel<th class=\"number\">score<th>"
        "<th class=\"number\">critical<th class=\"number\">refuted<th class=\"number\">undecided"
        "</thead><tbody>\n",
        options(rules_), options(kernels_), plural(finding_count_, "finding"));
  }

  void add_to_overview(const FileAnalysis& file, const KernelAnalysis& kernel, const std::string& id) {
    const double percent = kernel.score.percent();
    overview_ += fmt::format(
        "<tr data-kernel=\"{0}\"><td>{1}<td><a href=\"#{2}\">{0}</a><td class=\"number\">{3:.1f}"
        "<td><span class=\"bar\"><span class=\"{4}\" style=\"width:{3:.1f}%\"></span></span>"
        "<td class=\"number\">{5}<td class=\"number\">{6}<td class=\"number\">{7}\n",
        for_html(name_of(kernel)), for_html(file.path), id, percent,
        score_class_of(percent, kernel.count(Severity::critical) > 0), kernel.count(Severity::critical),
        kernel.count(Verdict::refuted), kernel.count(Verdict::undecided));
  }

  std::string unparsable_html(const FileAnalysis& file) {
    overview_ += fmt::format("<tr><td><a href=\"#k{}\">{}</a><td colspan=\"6\" class=\"fault\">does not parse: {}\n",
                             next_, for_html(file.path), plural(file.parsed.diagnostics.size(), "error"));
    return fmt::format("<section class=\"kernel\" id=\"k{}\"><h2>{}</h2>\n<pre class=\"excerpt\">{}</pre></section>\n",
                       next_++, for_html(file.path), for_html(rendered(file.parsed)));
  }

  std::string kernel_html(const PendingKernel& open, bool is_excerpt) {
    const FileAnalysis& file = *open.file;
    const KernelAnalysis& kernel = open.kernel;
    HtmlKernel at{file, kernel, fmt::format("k{}", open.number),
                  kernel.function != ptx::kNone && (!is_large() || open.has_findings), is_excerpt};
    if (at.has_code) at.functions = functions_of(at.module(), kernel.function);
    std::string out = fmt::format(
        "<section class=\"kernel\" id=\"{}\" data-kernel=\"{}\">\n<h2>{} <small>{}, PTX {}.{}, {}</small></h2>\n",
        at.id, for_html(name_of(kernel)), for_html(name_of(kernel)), for_html(file.path), at.module().version_major,
        at.module().version_minor, for_html(at.module().target));
    if (kernel.run) out += fmt::format("<p class=\"place\">run: {}</p>\n", for_html(run_text(*kernel.run)));
    out += score_bars_html(kernel) + findings_html(at) + verdicts_html(kernel);
    if (at.has_code) {
      out += code_html(at, source_text_);
      if (!at.is_excerpt) out += flow_html(at) + shared_memory_html(at, options_);
    }
    return out + "</section>\n";
  }

  std::string findings_html(const HtmlKernel& at) {
    struct Entry {
      const rules::RuleInfo* rule;
      AnyFinding finding;
    };
    std::vector<Entry> entries;
    for (const RuleVerdict& verdict : at.kernel.verdicts) {
      for (AnyFinding& each : all_findings(at.module(), at.kernel, verdict)) {
        entries.push_back({verdict.rule, std::move(each)});
      }
    }
    std::ranges::stable_sort(entries, std::greater(),
                             [](const Entry& entry) { return entry.finding.finding->severity; });
    std::string out = "<h3>Findings</h3>\n";
    if (entries.empty()) return out + "<p>none</p>\n";
    for (const Entry& entry : entries) out += finding_html(at, *entry.rule, entry.finding);
    kernels_[name_of(at.kernel)] += entries.size();
    finding_count_ += entries.size();
    return out;
  }

  std::string finding_html(const HtmlKernel& at, const rules::RuleInfo& rule, const AnyFinding& each) {
    ++rules_[std::string(rule.id)];
    const rules::Finding& finding = *each.finding;
    const ptx::Module& module = at.module();
    const uint32_t line = module.position(finding.at).line;
    std::string out = fmt::format(
        "<article class=\"finding {0}{1}\" data-rule=\"{2}\" data-kernel=\"{3}\" data-severity=\"{4}\" "
        "data-fingerprint=\"{5}\">\n<h4><span class=\"tag\">{0}</span> {6} <small title=\"{7}\">{2} {8}, "
        "{9}</small></h4>\n",
        text(finding.severity), each.suppressed ? " suppressed" : "", rule.id, for_html(name_of(at.kernel)),
        static_cast<int>(finding.severity), each.fingerprint, for_html(finding.message), for_html(rule.property),
        rule.name, text(finding.tier));
    const bool is_in_page = at.has_code && (!at.is_excerpt || finding.severity != Severity::info);
    out += place_html(at, is_in_page, line, statement_at(module, finding.at), "");
    const auto label = [&](std::string_view name, std::string_view what) {
      if (!what.empty()) out += fmt::format("<dt>{}<dd>{}\n", name, for_html(what));
    };
    out += "<dl>";
    if (each.suppressed) label("suppressed", each.suppressed->reason);
    for (const rules::Step& step : finding.path) {
      out += fmt::format("<dt>path<dd>{}\n", place_html(at, is_in_page, module.position(step.at).line,
                                                        statement_at(module, step.at), step.what));
    }
    for (const std::string& assumption : finding.assumptions) label("assumes", assumption);
    if (finding.witness) label("witness", witness_text(*finding.witness));
    label("evidence", finding.evidence);
    if (finding.replay)
      label("replay", fmt::format("{}: {}", replay_word(finding.replay->outcome), finding.replay->what));
    label("repeat", finding.command);
    label("remedy", finding.remedy);
    return out + "</dl></article>\n";
  }

  static std::string place_html(const HtmlKernel& at, bool is_in_page, uint32_t line, std::string_view statement,
                                std::string_view what) {
    const bool is_shown = is_in_page && at.owns(line);
    const std::string number = is_shown ? fmt::format("<a href=\"#{}\">line {}</a>", ptx_line_id(at, line), line)
                                        : fmt::format("line {}", line);
    return fmt::format("<p class=\"place\">{} <code>{}</code> {}</p>\n", number, for_html(statement), for_html(what));
  }

  static std::string verdicts_html(const KernelAnalysis& kernel) {
    std::string out = fmt::format("<details><summary>Verdicts of {}</summary>\n<table class=\"verdicts\">",
                                  plural(kernel.verdicts.size(), "rule"));
    for (const RuleVerdict& entry : kernel.verdicts) {
      rules::Score change;
      change.add(*entry.rule, entry.result);
      out += fmt::format("<tr class=\"{0}\"><td>{1}<td>{2}<td>{3}<td class=\"number\">{4}<td>{5}\n",
                         entry.result.verdict == Verdict::not_applicable ? "na" : text(entry.result.verdict),
                         entry.rule->id, entry.rule->name, text(entry.result.verdict),
                         change.lost     ? fmt::format("-{}", change.lost)
                         : change.earned ? fmt::format("+{}", change.earned)
                                         : "",
                         for_html(entry.result.basis));
    }
    return out + "</table></details>\n";
  }

  const AnalysisOptions& options_;
  const SourceText& source_text_;
  Spool spool_;
  std::vector<Piece> pieces_;        // in page order
  std::vector<PendingKernel> open_;  // in report order
  Totals totals_;
  std::string title_;
  size_t kernel_count_ = 0;
  unsigned next_ = 0;  // number of the next kernel
  size_t finding_count_ = 0;
  std::map<std::string, size_t> rules_, kernels_;  // findings of each
  std::string overview_;
};

std::string for_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : printable_lines(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string_view score_class_of(double percent, bool has_critical) {
  if (has_critical) return "poor";
  return percent >= rules::kGoodPercent ? "good" : percent >= rules::kFairPercent ? "fair" : "poor";
}

std::string ptx_line_id(const HtmlKernel& at, uint32_t line) { return fmt::format("{}-p{}", at.id, line); }

HtmlReport::HtmlReport(const AnalysisOptions& options, const SourceText& source_text, const std::string& path)
    : page_(std::make_unique<Page>(options, source_text, path)) {}

HtmlReport::~HtmlReport() = default;

void HtmlReport::add(const std::shared_ptr<FileAnalysis>& file) {
  // Count the kernels before they are moved away.
  page_->count(*file);
  page_->add(file, std::exchange(file->kernels, {}));
}

Result<void> HtmlReport::save(const std::string& path) {
  Spool page(path);
  if (!page_->write([&](std::string_view text) { page.append(text); }))
    return fail("cannot write: no room for the temporary files", path);
  return page.save(path);
}

std::string to_html(std::span<const FileAnalysis> files, const AnalysisOptions& options,
                    const SourceText& source_text) {
  Page page(options, source_text, "");
  for (const FileAnalysis& file : files) {
    page.count(file);
    page.add(std::shared_ptr<const FileAnalysis>(std::shared_ptr<void>(), &file), file.kernels);
  }
  std::string out;
  PTXKIT_CHECK(page.write([&](std::string_view text) { out += text; }), "a page in memory cannot be read");
  return out;
}

}  // namespace ptxkit::report
