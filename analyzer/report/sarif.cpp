// Static Analysis Results Interchange Format, OASIS standard 2.1.0; section numbers below are its.
#include "analyzer/report/sarif.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analyzer/report/fingerprint.hpp"
#include "analyzer/report/identity.hpp"
#include "analyzer/report/place.hpp"
#include "analyzer/report/words.hpp"
#include "analyzer/rules/table.hpp"

namespace ptxkit::report {
namespace {

using Json = nlohmann::ordered_json;
using rules::Finding;
using rules::Severity;

// 3.27.10: whoever reads this sorts by level, so the order of severities has to survive.
std::string_view level_of(Severity severity) {
  switch (severity) {
    case Severity::critical:
    case Severity::high:
      return "error";
    case Severity::medium:
      return "warning";
    case Severity::low:
      return "note";
    case Severity::info:
      break;
  }
  return "none";
}

// 3.10.1: a path as a URI reference. Bytes with a meaning of their own are escaped, as in "app:fatbin[0].sm_80.ptx".
std::string uri_of(std::string_view path) {
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          std::string_view("-._~/").find(c) != std::string_view::npos;
    uri += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

Json message(std::string_view text) { return {{"text", text}}; }

Json location(const ptx::Module& module, ptx::Offset at) {
  const ptx::Position position = module.position(at);
  const std::string_view statement = statement_at(module, at);
  Json region = {{"startLine", position.line},
                 {"startColumn", position.column},
                 {"endColumn", position.column + std::max<size_t>(statement.size(), 1)}};
  if (!statement.empty()) region["snippet"] = {{"text", statement}};
  return {{"physicalLocation", {{"artifactLocation", {{"uri", uri_of(module.path)}}}, {"region", std::move(region)}}}};
}

Json source_location(const SourcePlace& place, size_t depth) {
  Json region = {{"startLine", std::max(place.line, 1u)}};
  if (place.column) region["startColumn"] = place.column;
  return {{"id", depth},
          {"physicalLocation", {{"artifactLocation", {{"uri", uri_of(place.file)}}}, {"region", std::move(region)}}},
          {"message", message(depth == 0 ? "the source line of the instruction" : "inlined here")}};
}

// 3.36: the steps of the data flow, and the finding itself as the last one.
Json code_flow(const ptx::Module& module, const Finding& finding) {
  Json locations = Json::array();
  const auto add = [&](ptx::Offset at, std::string_view what) {
    Json step = location(module, at);
    step["message"] = message(what);
    locations.push_back({{"location", std::move(step)}});
  };
  for (const rules::Step& step : finding.path) add(step.at, step.what);
  add(finding.at, finding.message);
  return {{"threadFlows", {{{"locations", std::move(locations)}}}}};
}

Json rule_json(const rules::RuleInfo& rule, const RulePage& rule_page) {
  Json json = {
      {"id", rule.id},
      {"name", rule.name},
      {"shortDescription", message(rule.property)},
      {"defaultConfiguration", {{"level", level_of(rule.severity)}}},
      {"properties", {{"category", rule.category}, {"severity", text(rule.severity)}, {"points", rule.points}}}};
  const std::string_view page = rule_page ? rule_page(rule.id) : std::string_view();
  // 3.49.12: `text` is what a reader without Markdown gets.
  json["help"] = {{"text", page.empty() ? rule.property : page}};
  if (!page.empty()) json["help"]["markdown"] = page;
  return json;
}

Json result_json(const ptx::Module& module, const KernelAnalysis& kernel, const rules::RuleInfo& rule,
                 const Finding& finding, const std::string& fingerprint) {
  const bool is_note = finding.severity == Severity::info;
  Json json = {{"ruleId", rule.id},
               {"ruleIndex", index_of(rule)},
               {"kind", is_note ? "informational" : "fail"},
               {"level", level_of(finding.severity)},
               {"message", message(finding.message)},
               {"locations", Json::array({location(module, finding.at)})}};
  if (!kernel.name.empty()) {
    json["locations"][0]["logicalLocations"] = {{{"name", kernel.name}, {"kind", "function"}}};
  }
  if (kernel.function != ptx::kNone && finding.instruction < module.functions[kernel.function].instructions.size()) {
    const auto& instruction = module.functions[kernel.function].instructions[finding.instruction];
    const std::vector<SourcePlace> places = source_places(module, instruction.location);
    for (size_t i = 0; i < places.size(); ++i) json["relatedLocations"].push_back(source_location(places[i], i));
  }
  if (!finding.path.empty()) json["codeFlows"] = Json::array({code_flow(module, finding)});
  json["partialFingerprints"] = {{"ptxkitFinding/v1", fingerprint}};
  json["properties"] = {{"severity", text(finding.severity)}, {"tier", text(finding.tier)}};
  if (finding.witness) json["properties"]["witness"] = witness_text(*finding.witness);
  if (!finding.assumptions.empty()) json["properties"]["assumptions"] = finding.assumptions;
  if (!finding.remedy.empty()) json["properties"]["remedy"] = finding.remedy;
  if (!finding.evidence.empty()) json["properties"]["evidence"] = finding.evidence;
  return json;
}

void add_results(const FileAnalysis& file, Json& results) {
  const ptx::Module& module = file.parsed.module;
  for (const KernelAnalysis& kernel : file.kernels) {
    for (const RuleVerdict& verdict : kernel.verdicts) {
      const std::vector<AnyFinding> findings = all_findings(module, kernel, verdict);
      for (const AnyFinding& each : findings) {
        Json result = result_json(module, kernel, *verdict.rule, *each.finding, each.fingerprint);
        if (each.suppressed) {
          const bool is_comment = each.suppressed->by == Suppressed::By::comment;
          result["suppressions"] = {
              {{"kind", is_comment ? "inSource" : "external"}, {"justification", each.suppressed->reason}}};
        }
        results.push_back(std::move(result));
      }
    }
  }
}

}  // namespace

std::string to_sarif(const Report& report, const RulePage& rule_page) {
  Json driver = {{"name", "ptx-debug"}, {"semanticVersion", tool_version()}, {"rules", Json::array()}};
  for (const rules::RuleInfo& rule : rules::catalogue()) driver["rules"].push_back(rule_json(rule, rule_page));
  Json invocation = {{"executionSuccessful", report.status() != rules::Status::unreadable},
                     {"exitCode", rules::exit_code(report.status())},
                     {"toolExecutionNotifications", Json::array()}};
  Json results = Json::array();
  for (const FileAnalysis& file : report.files) {
    if (file.error) {
      invocation["toolExecutionNotifications"].push_back(
          {{"level", "error"}, {"message", message(file.error->message())}});
      continue;
    }
    for (const std::string& remark : file.remarks) {
      invocation["toolExecutionNotifications"].push_back({{"level", "warning"}, {"message", message(remark)}});
    }
    add_results(file, results);
  }
  Json run = {{"tool", {{"driver", std::move(driver)}}},
              {"invocations", Json::array({std::move(invocation)})},
              {"columnKind", "unicodeCodePoints"},
              {"results", std::move(results)}};
  const Json log = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                    {"version", "2.1.0"},
                    {"runs", Json::array({std::move(run)})}};
  return log.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ptxkit::report
