// PTX and source side by side. Lines that belong together have the same `data-source`.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/analyze/fingerprint.hpp"
#include "analyzer/analyze/place.hpp"
#include "analyzer/report/html.hpp"
#include "analyzer/report/html_parts.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/table.hpp"
#include "support/plural.hpp"

namespace ptxkit::report {
namespace {

constexpr uint32_t kWholeFunctionLines = 3000;  // of a longer one only the code around findings is shown
constexpr uint32_t kPtxContextLines = 20, kExcerptContextLines = 5, kSourceContextLines = 3;
constexpr size_t kMostLineBytes = 2000;   // of a longer line, as many around the function are shown
constexpr size_t kLineBytesBefore = 100;  // of these, in front of the function

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// The worst finding of a line.
struct Mark {
  rules::Severity severity = rules::Severity::info;
  std::string title;
};

class Code {
 public:
  Code(const HtmlKernel& at, const SourceText& source_text)
      : at_(at), module_(at.module()), source_text_(source_text) {}

  std::string write() {
    collect_marks();
    collect_sources();
    std::string out = fmt::format("<details class=\"code\" open><summary>PTX{}</summary>\n<div class=\"panels\">\n",
                                  files_.empty() ? "" : " and source");
    out += ptx_panel();
    for (size_t i = 0; i < files_.size(); ++i) out += source_panel(i);
    out += "</div>";
    for (const std::string& name : absent_) out += fmt::format("<p>source {} is not at hand</p>\n", for_html(name));
    return out + "</details>\n";
  }

 private:
  struct File {
    std::string name;
    std::string text;
    size_t line_count;
    std::set<uint32_t> lines;        // lines that instructions come from
    std::map<uint32_t, Mark> marks;  // the worst finding of their instructions
  };

  void collect_marks() {
    for (const RuleVerdict& verdict : at_.kernel.verdicts) {
      for (const AnyFinding& each : all_findings(module_, at_.kernel, verdict)) {
        Mark& mark = marks_[module_.position(each.finding->at).line];
        mark.severity = std::max(mark.severity, each.finding->severity);
        mark.title += fmt::format("{}{}: {}", mark.title.empty() ? "" : "\n", verdict.rule->id, each.finding->message);
        const bool is_shown = !at_.is_excerpt || each.finding->severity != rules::Severity::info;
        if (is_shown) shown_.insert(module_.position(each.finding->at).line);
        for (const rules::Step& step : each.finding->path) {
          steps_.insert(module_.position(step.at).line);
          if (is_shown) shown_.insert(module_.position(step.at).line);
        }
      }
    }
  }

  bool is_in_page(const ptx::Function& function, uint32_t line) const {
    const uint32_t first = module_.position(function.at).line, last = module_.position(function.end).line;
    if (!at_.is_excerpt && last - first < kWholeFunctionLines) return true;
    const uint32_t context = at_.is_excerpt ? kExcerptContextLines : kPtxContextLines;
    const auto near = shown_.lower_bound(line > context ? line - context : 0);
    return near != shown_.end() && *near <= line + context;
  }

  // For each line of PTX, the innermost source place whose file is available.
  void collect_sources() {
    for (const ptx::Function* function : at_.functions) collect_sources_of(*function);
  }

  void collect_sources_of(const ptx::Function& function) {
    for (const ptx::Instruction& instruction : function.instructions) {
      const uint32_t line = module_.position(instruction.at).line;
      if (at_.is_excerpt && !is_in_page(function, line)) continue;
      for (const SourcePlace& place : source_places(module_, instruction.location)) {
        const auto [found, is_new] = known_.emplace(place.file, std::string::npos);
        if (is_new) {
          if (auto text = source_text_ ? source_text_(at_.file.path, place.file) : std::nullopt) {
            found->second = files_.size();
            const size_t line_count = lines_of(*text).size();
            files_.push_back({place.file, std::move(*text), line_count, {}, {}});
          } else {
            absent_.push_back(place.file);
          }
        }
        if (found->second == std::string::npos || place.line == 0) continue;
        if (place.line > files_[found->second].line_count) continue;  // the file is shorter than at compile time
        files_[found->second].lines.insert(place.line);
        source_of_.emplace(line, std::pair(found->second, place.line));
        if (const auto mark = marks_.find(line); mark != marks_.end()) {
          Mark& here = files_[found->second].marks[place.line];
          if (here.title.empty() || here.severity < mark->second.severity) here = mark->second;
        }
        break;
      }
    }
  }

  static std::string gap(uint32_t count) {
    return fmt::format("<tr class=\"gap\"><td><td>{} not shown\n", plural(count, "line"));
  }

  std::string ptx_panel() const {
    std::string out = "<table class=\"lines ptx\">";
    for (const ptx::Function* function : at_.functions) {
      if (function != &at_.function())
        out += fmt::format("<tr class=\"callee\"><td><td>called: {}\n", for_html(function->name));
      out += rows_of(*function);
    }
    return out + "</table>\n";
  }

  std::string rows_of(const ptx::Function& function) const {
    const uint32_t first = module_.position(function.at).line, last = module_.position(function.end).line;
    std::string out;
    uint32_t hidden = 0;
    for (uint32_t line = first; line <= last; ++line) {
      if (!is_in_page(function, line)) {
        ++hidden;
        continue;
      }
      if (hidden) out += gap(std::exchange(hidden, 0));
      out += ptx_row(function, line);
    }
    if (hidden) out += gap(hidden);
    return out;
  }

  // A line of usual length; of a longer one, which may hold thousands of kernels, the bytes around `at`.
  static std::string excerpt(std::string_view line, size_t at) {
    if (line.size() <= kMostLineBytes) return std::string(line);
    const size_t begin = at - std::min(at, kLineBytesBefore);
    const std::string_view shown = line.substr(begin, kMostLineBytes);
    return fmt::format("{}{}{}", begin == 0 ? "" : "… ", shown, begin + shown.size() == line.size() ? "" : " …");
  }

  static std::string mark_html(const Mark& mark) {
    return fmt::format(" class=\"{}\" title=\"{}\"", text(mark.severity), for_html(mark.title));
  }

  std::string ptx_row(const ptx::Function& function, uint32_t line) const {
    std::string attributes = fmt::format("id=\"{}\"", ptx_line_id(at_, line));
    std::string number = std::to_string(line);
    if (const auto source = source_of_.find(line); source != source_of_.end()) {
      const auto& [file, source_line] = source->second;
      attributes += fmt::format(" data-source=\"{}:{}\"", file, source_line);
      number = fmt::format("<a href=\"#{}\">{}</a>", source_line_id(file, source_line), line);
    }
    if (const auto mark = marks_.find(line); mark != marks_.end()) {
      attributes += mark_html(mark->second);
    } else if (steps_.contains(line)) {
      attributes += " class=\"step\"";
    }
    const ptx::Position begin = module_.position(function.at);
    const std::string text = excerpt(module_.line(line), line == begin.line ? begin.column - 1 : 0);
    return fmt::format("<tr {}><td>{}<td>{}\n", attributes, number, for_html(text));
  }

  std::string source_line_id(size_t file, uint32_t line) const { return fmt::format("{}-s{}-{}", at_.id, file, line); }

  std::string source_panel(size_t index) const {
    const File& file = files_[index];
    std::string out = fmt::format("<table class=\"lines source\"><caption>{}</caption>", for_html(file.name));
    uint32_t number = 0, hidden = 0;
    for (const std::string_view line : lines_of(file.text)) {
      ++number;
      const auto near = file.lines.lower_bound(number > kSourceContextLines ? number - kSourceContextLines : 0);
      if (near == file.lines.end() || *near > number + kSourceContextLines) {
        ++hidden;
        continue;
      }
      if (hidden) out += gap(std::exchange(hidden, 0));
      std::string link =
          file.lines.contains(number) ? fmt::format(" data-source=\"{}:{}\"", index, number) : std::string();
      if (const auto mark = file.marks.find(number); mark != file.marks.end()) link += mark_html(mark->second);
      out += fmt::format("<tr id=\"{}\"{}><td>{}<td>{}\n", source_line_id(index, number), link, number,
                         for_html(excerpt(line, 0)));
    }
    if (hidden) out += gap(hidden);
    return out + "</table>\n";
  }

  const HtmlKernel& at_;
  const ptx::Module& module_;
  const SourceText& source_text_;
  std::map<uint32_t, Mark> marks_;    // by line of PTX
  std::set<uint32_t> steps_, shown_;  // lines on finding paths; lines whose neighbours are shown
  std::vector<File> files_;
  std::map<std::string, size_t> known_;  // index in files_; npos for an unavailable file
  std::vector<std::string> absent_;
  std::map<uint32_t, std::pair<size_t, uint32_t>> source_of_;  // line of PTX -> file and line
};

}  // namespace

bool is_shown_whole(const HtmlKernel& at) {
  const auto line = [&](ptx::Offset offset) { return at.module().position(offset).line; };
  return !at.is_excerpt && line(at.function().end) - line(at.function().at) < kWholeFunctionLines;
}

std::vector<const ptx::Function*> functions_of(const ptx::Module& module, ptx::FunctionId kernel) {
  std::vector<const ptx::Function*> found{&module.functions[kernel]};
  for (size_t i = 0; i < found.size(); ++i) {
    for (const ptx::Operand& operand : found[i]->operand_pool) {
      if (operand.kind != ptx::OperandKind::function) continue;
      const ptx::Function& named = module.functions[operand.id];
      if (named.has_body && !named.is_entry && std::ranges::find(found, &named) == found.end()) found.push_back(&named);
    }
  }
  return found;
}

bool HtmlKernel::owns(uint32_t line) const {
  return std::ranges::any_of(functions, [&](const ptx::Function* each) {
    return module().position(each->at).line <= line && line <= module().position(each->end).line;
  });
}

std::string code_html(const HtmlKernel& at, const SourceText& source_text) { return Code(at, source_text).write(); }

}  // namespace ptxkit::report
