// Static Analysis Results Interchange Format (SARIF), OASIS standard 2.1.0, whose section numbers are given below.
#include "analyzer/report/sarif.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/analyze/fingerprint.hpp"
#include "analyzer/analyze/identity.hpp"
#include "analyzer/analyze/place.hpp"
#include "analyzer/report/rule_page.hpp"
#include "analyzer/report/words.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/score.hpp"
#include "analyzer/rules/table.hpp"
#include "support/json.hpp"
#include "support/printable.hpp"

namespace ptxkit::report {
namespace {

using rules::Finding;
using rules::Severity;

// 3.27.10: viewers sort by level, so the mapping keeps the order of severities.
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

// 3.10.1: a path as a URI reference. Reserved characters are escaped, as in "app:fatbin[0].sm_80.ptx".
std::string uri_of(std::string_view path) {
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          std::string_view("-._~/").find(c) != std::string_view::npos;
    uri += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

// 3.11.6: "[text](target)" in a message is a link. Brackets that come from a text or a file name are escaped.
OrderedJson message(std::string_view text) {
  std::string shown = printable_lines(text);
  if (shown.find("](") != shown.npos) {
    std::string escaped;
    for (const char c : shown) {
      if (c == '[' || c == ']') escaped += '\\';
      escaped += c;
    }
    shown = std::move(escaped);
  }
  return {{"text", std::move(shown)}};
}

OrderedJson location(const ptx::Module& module, ptx::Offset at) {
  const ptx::Position position = module.position(at);
  const std::string_view statement = statement_at(module, at);
  OrderedJson region = {{"startLine", position.line},
                        {"startColumn", position.column},
                        {"endColumn", position.column + std::max<size_t>(statement.size(), 1)}};
  if (!statement.empty()) region["snippet"] = {{"text", statement}};
  return {{"physicalLocation", {{"artifactLocation", {{"uri", uri_of(module.path)}}}, {"region", std::move(region)}}}};
}

// 3.27.22: adds the source lines behind an instruction as related locations; ids are unique within a result.
void add_sources(const ptx::Module& module, ptx::LocationId location, OrderedJson& result) {
  std::string_view what = "the source line of the instruction";
  for (const SourcePlace& place : source_places(module, location)) {
    OrderedJson region = {{"startLine", std::max(place.line, 1u)}};
    if (place.column) region["startColumn"] = place.column;
    OrderedJson& related = result["relatedLocations"];
    related.push_back(
        {{"id", related.size()},
         {"physicalLocation", {{"artifactLocation", {{"uri", uri_of(place.file)}}}, {"region", std::move(region)}}},
         {"message", message(what)}});
    what = "inlined here";
  }
}

// 3.36: the steps of the data flow, ending with the finding itself.
OrderedJson code_flow(const ptx::Module& module, const Finding& finding) {
  OrderedJson locations = OrderedJson::array();
  const auto add = [&](ptx::Offset at, std::string_view what) {
    OrderedJson step = location(module, at);
    step["message"] = message(what);
    locations.push_back({{"location", std::move(step)}});
  };
  for (const rules::Step& step : finding.path) add(step.at, step.what);
  add(finding.at, finding.message);
  return {{"threadFlows", {{{"locations", std::move(locations)}}}}};
}

OrderedJson rule_json(const rules::RuleInfo& rule) {
  OrderedJson json = {
      {"id", rule.id},
      {"name", rule.name},
      {"shortDescription", message(rule.property)},
      {"defaultConfiguration", {{"level", level_of(rule.severity)}}},
      {"properties", {{"category", rule.category}, {"severity", text(rule.severity)}, {"points", rule.points}}}};
  const std::string_view page = rule_page(rule.id);
  // 3.49.12: `text` is for viewers without Markdown.
  json["help"] = {{"text", page.empty() ? rule.property : page}};
  if (!page.empty()) json["help"]["markdown"] = page;
  return json;
}

OrderedJson result_json(const ptx::Module& module, const KernelAnalysis& kernel, const rules::RuleInfo& rule,
                        const Finding& finding, const std::string& fingerprint) {
  const bool is_note = finding.severity == Severity::info;
  OrderedJson json = {{"ruleId", rule.id},
                      {"ruleIndex", index_of(rule)},
                      {"kind", is_note ? "informational" : "fail"},
                      {"level", level_of(finding.severity)},
                      {"message", message(finding.message)},
                      {"locations", OrderedJson::array({location(module, finding.at)})}};
  if (!kernel.name.empty()) {
    json["locations"][0]["logicalLocations"] = {{{"name", kernel.name}, {"kind", "function"}}};
  }
  add_sources(module, finding.location, json);
  if (!finding.path.empty()) json["codeFlows"] = OrderedJson::array({code_flow(module, finding)});
  json["partialFingerprints"] = {{"ptxkitFinding/v1", fingerprint}};
  json["properties"] = {{"severity", text(finding.severity)}, {"tier", text(finding.tier)}};
  if (finding.witness) json["properties"]["witness"] = witness_text(*finding.witness);
  if (!finding.assumptions.empty()) json["properties"]["assumptions"] = finding.assumptions;
  if (!finding.remedy.empty()) json["properties"]["remedy"] = finding.remedy;
  if (!finding.evidence.empty()) json["properties"]["evidence"] = finding.evidence;
  if (!finding.command.empty()) json["properties"]["command"] = finding.command;
  if (finding.replay)
    json["properties"]["replay"] = {{"outcome", replay_word(finding.replay->outcome)}, {"what", finding.replay->what}};
  return json;
}

std::vector<OrderedJson> results_of(const FileAnalysis& file) {
  std::vector<OrderedJson> results;
  const ptx::Module& module = file.parsed.module;
  for (const KernelAnalysis& kernel : file.kernels) {
    for (const RuleVerdict& verdict : kernel.verdicts) {
      const std::vector<AnyFinding> findings = all_findings(module, kernel, verdict);
      for (const AnyFinding& each : findings) {
        OrderedJson result = result_json(module, kernel, *verdict.rule, *each.finding, each.fingerprint);
        if (each.suppressed) {
          const bool is_comment = each.suppressed->by == Suppressed::By::comment;
          result["suppressions"] = {
              {{"kind", is_comment ? "inSource" : "external"}, {"justification", each.suppressed->reason}}};
        }
        results.push_back(std::move(result));
      }
    }
  }
  return results;
}

std::string dumped(const OrderedJson& json) {
  return printable_json(json.dump(2, ' ', false, OrderedJson::error_handler_t::replace));
}

// The pieces of a log with one run: the text before the results, each result, the text after them.
class Log {
 public:
  // The rules are those of the catalogue in order, followed by `further_rules`.
  static std::string begin(OrderedJson further_rules) {
    OrderedJson driver = {{"name", "ptx-debug"}, {"semanticVersion", tool_version()}, {"rules", OrderedJson::array()}};
    for (const rules::RuleInfo& rule : rules::catalogue()) driver["rules"].push_back(rule_json(rule));
    for (OrderedJson& rule : further_rules) driver["rules"].push_back(std::move(rule));
    const OrderedJson tool = {{"driver", std::move(driver)}};
    return fmt::format(
        "{{\n\"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\",\n\"version\": \"2.1.0\",\n\"runs\": [{{\n"
        "\"tool\": {},\n\"columnKind\": \"unicodeCodePoints\",\n\"results\": [",
        dumped(tool));
  }

  std::string result(const OrderedJson& result) {
    return (std::exchange(has_results_, true) ? ",\n" : "\n") + dumped(result);
  }

  static std::string end(const OrderedJson& invocation) {
    return fmt::format("\n],\n\"invocations\": [{}]\n}}]\n}}\n", dumped(invocation));
  }

 private:
  bool has_results_ = false;
};

// The index of the fault's rule. A rule that is not in the catalogue is appended to `further_rules`.
size_t rule_index(const RunFault& fault, OrderedJson& further_rules) {
  if (const rules::RuleInfo* rule = rules::find_rule(fault.rule)) return index_of(*rule);
  const auto known =
      std::ranges::find_if(further_rules, [&](const OrderedJson& rule) { return rule["id"] == fault.kind; });
  const size_t index = rules::catalogue().size() + static_cast<size_t>(known - further_rules.begin());
  if (known == further_rules.end()) {
    further_rules.push_back(
        {{"id", fault.kind}, {"shortDescription", message(fault.meaning)}, {"help", message(fault.meaning)}});
  }
  return index;
}

ptx::LocationId location_of(const ptx::Function& function, ptx::InstructionId instruction) {
  return instruction < function.instructions.size() ? function.instructions[instruction].location : ptx::kNone;
}

ptx::Offset offset_of(const ptx::Function& function, ptx::InstructionId instruction) {
  return instruction < function.instructions.size() ? function.instructions[instruction].at : function.at;
}

OrderedJson result_json(const ptx::Module& module, const RunFault& fault, PlaceCounts& seen,
                        OrderedJson& further_rules) {
  const ptx::Function& function = module.functions[fault.at.function];
  const ptx::Offset at = offset_of(function, fault.at.instruction);
  const std::string& id = fault.rule.empty() ? fault.kind : fault.rule;
  OrderedJson json = {{"ruleId", id},
                      {"ruleIndex", rule_index(fault, further_rules)},
                      {"kind", "fail"},
                      {"level", fault.is_note ? "note" : "error"},
                      {"message", message(fault.message)},
                      {"locations", OrderedJson::array({location(module, at)})}};
  json["locations"][0]["logicalLocations"] = {{{"name", function.name}, {"kind", "function"}}};
  add_sources(module, location_of(function, fault.at.instruction), json);
  if (fault.other) {
    const auto& [place, what] = *fault.other;
    const ptx::Function& other = module.functions[place.function];
    OrderedJson side = location(module, offset_of(other, place.instruction));
    side["message"] = message(what);
    OrderedJson& related = json["relatedLocations"];
    side["id"] = related.size();
    related.push_back(std::move(side));
    add_sources(module, location_of(other, place.instruction), json);
  }
  json["partialFingerprints"] = {{"ptxkitFinding/v1", fingerprint(id, function.name, statement_at(module, at), seen)}};
  json["properties"] = {{"fault", fault.kind}};
  for (const auto& [name, value] : fault.properties) json["properties"][name] = value;
  return json;
}

class SarifDocument : public Document {
 public:
  std::string begin() override { return Log::begin({}); }

  std::string add(const FileAnalysis& file) override {
    if (file.error) {
      notify("error", file.error->message());
      return {};
    }
    for (const std::string& remark : file.remarks) notify("warning", remark);
    std::string text;
    for (const OrderedJson& result : results_of(file)) text += log_.result(result);
    return text;
  }

  std::string end(const Totals& totals) override {
    return Log::end({{"executionSuccessful", totals.status != rules::Status::unreadable},
                     {"exitCode", rules::exit_code(totals.status)},
                     {"toolExecutionNotifications", std::move(notifications_)}});
  }

 private:
  void notify(std::string_view level, std::string_view what) {
    notifications_.push_back({{"level", level}, {"message", message(what)}});
  }

  Log log_;
  OrderedJson notifications_ = OrderedJson::array();
};

}  // namespace

std::unique_ptr<Document> sarif_document() { return std::make_unique<SarifDocument>(); }

std::string to_sarif(const ptx::Module& module, std::span<const RunFault> faults, int exit_code) {
  PlaceCounts seen;
  OrderedJson further_rules = OrderedJson::array();
  Log log;
  std::string results;
  for (const RunFault& fault : faults) results += log.result(result_json(module, fault, seen, further_rules));
  return Log::begin(std::move(further_rules)) + results +
         Log::end({{"executionSuccessful", true},
                   {"exitCode", exit_code},
                   {"toolExecutionNotifications", OrderedJson::array()}});
}

}  // namespace ptxkit::report
