#include "tools/ptx-debug/lsp/diagnostics.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analyzer/analyze/place.hpp"
#include "analyzer/report/words.hpp"
#include "analyzer/rules/table.hpp"

namespace ptxkit::lsp {
namespace {

// DiagnosticSeverity: error, warning, information, hint.
int severity_number(rules::Severity severity) {
  switch (severity) {
    case rules::Severity::critical:
    case rules::Severity::high:
      return 1;
    case rules::Severity::medium:
      return 2;
    case rules::Severity::low:
      return 3;
    case rules::Severity::info:
      break;
  }
  return 4;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string uri_of(std::string_view path) {
  std::string uri = "file://";
  for (const char c : path) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          std::string_view("-._~/").find(c) != std::string_view::npos;
    uri += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

Json related_place(const Document& document, const ptx::Module& module, ptx::Offset at, std::string_view what) {
  const size_t size = std::max<size_t>(report::statement_at(module, at).size(), 1);
  return {{"location", {{"uri", document.uri()}, {"range", range_json(document.places(), at, at + size)}}},
          {"message", what}};
}

// The steps of the data flow, then the source lines. A relative path is that of a file beside the text.
Json related_places(const Document& document, const ptx::Module& module, const rules::Finding& finding) {
  Json related = Json::array();
  for (const rules::Step& step : finding.path) related.push_back(related_place(document, module, step.at, step.what));
  const std::string own = path_of(document.uri()).value_or("");
  std::string_view what = "the source line of the instruction";
  for (const report::SourcePlace& place : report::source_places(module, finding.location)) {
    const bool is_absolute = place.file.starts_with('/');
    if (!is_absolute && own.empty()) continue;
    const std::string path = is_absolute ? place.file : own.substr(0, own.rfind('/') + 1) + place.file;
    const uint32_t line = std::max(place.line, 1u) - 1, column = std::max(place.column, 1u) - 1;
    related.push_back(
        {{"location",
          {{"uri", uri_of(path)},
           {"range",
            {{"start", {{"line", line}, {"character", column}}}, {"end", {{"line", line}, {"character", column}}}}}}},
         {"message", what}});
    what = "inlined here";
  }
  return related;
}

// ":12: allow comment: ...": a remark on a comment that suppresses nothing.
Json remark_json(const Document& document, const std::string& remark) {
  uint32_t line = 1;
  const auto [end, error] = std::from_chars(remark.data() + 1, remark.data() + remark.size(), line);
  const std::string what = error == std::errc() ? std::string(end + 2) : remark;
  const Places& places = document.places();
  const uint32_t index = std::max(line, 1u) - 1;
  return {{"range", range_json(places, places.line_begin(index), places.line_end(index))},
          {"severity", severity_number(rules::Severity::medium)},
          {"source", "ptx-debug"},
          {"message", what}};
}

std::string message_of(const rules::Finding& finding) {
  std::string text = fmt::format("{} ({})", finding.message, rules::text(finding.tier));
  if (finding.witness) {
    if (const std::string witness = report::witness_text(*finding.witness); !witness.empty())
      text += "\nwitness: " + witness;
  }
  for (const std::string& each : finding.assumptions) text += "\nassuming: " + each;
  if (!finding.remedy.empty()) text += "\nremedy: " + finding.remedy;
  return text;
}

}  // namespace

std::optional<std::string> path_of(std::string_view uri) {
  constexpr std::string_view kScheme = "file://";
  if (!uri.starts_with(kScheme)) return std::nullopt;
  uri.remove_prefix(kScheme.size());
  std::string path;
  for (size_t i = 0; i < uri.size(); ++i) {
    const int high = uri[i] == '%' && i + 2 < uri.size() ? hex_digit(uri[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(uri[i + 2]) : -1;
    path += low >= 0 ? static_cast<char>(high * 16 + low) : uri[i];
    if (low >= 0) i += 2;
  }
  return path;
}

std::vector<Trouble> troubles_of(const report::FileAnalysis& file) {
  std::vector<Trouble> troubles;
  const ptx::Module& module = file.parsed.module;
  for (const ptx::Diagnostic& each : file.parsed.diagnostics) {
    troubles.push_back(
        {ptx::rule(each.kind), rules::Severity::high, each.at, std::max(each.end, each.at + 1), each.message, nullptr});
  }
  std::set<std::tuple<std::string_view, ptx::Offset, std::string_view>> seen;
  for (const report::KernelAnalysis& kernel : file.kernels) {
    for (const report::RuleVerdict& verdict : kernel.verdicts) {
      if (!file.parsed.diagnostics.empty() && report::front_end_rules()[report::index_of(*verdict.rule)]) continue;
      for (const rules::Finding& finding : verdict.result.findings) {
        if (!seen.emplace(verdict.rule->id, finding.at, finding.message).second) continue;
        const size_t size = std::max<size_t>(report::statement_at(module, finding.at).size(), 1);
        troubles.push_back({verdict.rule->id, finding.severity, finding.at, finding.at + static_cast<ptx::Offset>(size),
                            message_of(finding), &finding});
      }
    }
  }
  std::ranges::stable_sort(troubles, {}, &Trouble::begin);
  return troubles;
}

Json published(const Document& document, std::optional<double> cut_seconds) {
  const report::FileAnalysis& file = *document.analysis();
  Json diagnostics = Json::array();
  for (const Trouble& trouble : troubles_of(file)) {
    Json json = {{"range", range_json(document.places(), trouble.begin, trouble.end)},
                 {"severity", severity_number(trouble.severity)},
                 {"code", trouble.rule},
                 {"source", "ptx-debug"},
                 {"message", trouble.message}};
    if (trouble.finding != nullptr) {
      Json related = related_places(document, file.parsed.module, *trouble.finding);
      if (!related.empty()) json["relatedInformation"] = std::move(related);
    }
    diagnostics.push_back(std::move(json));
  }
  for (const std::string& remark : file.remarks) diagnostics.push_back(remark_json(document, remark));
  if (cut_seconds) {
    diagnostics.push_back(
        {{"range", range_json(document.places(), 0, document.places().line_end(0))},
         {"severity", severity_number(rules::Severity::low)},
         {"source", "ptx-debug"},
         {"message", fmt::format("not all rules have run: the analysis takes longer than {} s", *cut_seconds)}});
  }
  Json json = {{"uri", document.uri()}};
  if (document.version()) json["version"] = *document.version();
  json["diagnostics"] = std::move(diagnostics);
  return json;
}

}  // namespace ptxkit::lsp
