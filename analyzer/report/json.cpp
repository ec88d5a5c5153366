// Keys are written as their values become known: the options, the files one by one, the outcome.
#include "analyzer/report/json.hpp"

#include <utility>

#include "analyzer/analyze/fingerprint.hpp"
#include "analyzer/analyze/identity.hpp"
#include "analyzer/analyze/place.hpp"
#include "analyzer/evidence/evidence.hpp"
#include "analyzer/report/words.hpp"
#include "analyzer/rules/table.hpp"
#include "support/json.hpp"
#include "support/printable.hpp"

namespace ptxkit::report {
namespace {

using rules::Finding;
using rules::Severity;
using rules::Verdict;

OrderedJson place_json(const ptx::Module& module, ptx::Offset at) {
  const ptx::Position position = module.position(at);
  return {{"line", position.line}, {"column", position.column}};
}

template <class T>
OrderedJson optional_json(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson thread_json(const std::optional<uint32_t> (&tid)[3]) {
  if (!tid[0] && !tid[1] && !tid[2]) return nullptr;
  return OrderedJson::array({optional_json(tid[0]), optional_json(tid[1]), optional_json(tid[2])});
}

OrderedJson finding_json(const ptx::Module& module, const Finding& finding) {
  OrderedJson json = {{"severity", text(finding.severity)}, {"tier", text(finding.tier)}, {"message", finding.message}};
  json.update(place_json(module, finding.at));
  json["ptx"] = statement_at(module, finding.at);
  json["source"] = OrderedJson::array();
  for (const SourcePlace& place : source_places(module, finding.location)) {
    json["source"].push_back({{"file", place.file}, {"line", place.line}, {"column", place.column}});
  }
  json["path"] = OrderedJson::array();
  for (const rules::Step& step : finding.path) {
    OrderedJson entry = place_json(module, step.at);
    entry["ptx"] = statement_at(module, step.at);
    entry["what"] = step.what;
    json["path"].push_back(std::move(entry));
  }
  json["assumptions"] = finding.assumptions;
  json["witness"] = nullptr;
  if (finding.witness) {
    json["witness"] = {{"tid", thread_json(finding.witness->tid)},
                       {"other_tid", thread_json(finding.witness->other_tid)},
                       {"iteration", optional_json(finding.witness->iteration)},
                       {"address", optional_json(finding.witness->address)},
                       {"note", finding.witness->note}};
  }
  json["evidence"] = finding.evidence;
  if (finding.replay)
    json["replay"] = {{"outcome", replay_word(finding.replay->outcome)}, {"what", finding.replay->what}};
  if (!finding.command.empty()) json["command"] = finding.command;
  json["remedy"] = finding.remedy;
  return json;
}

OrderedJson verdict_json(const ptx::Module& module, const KernelAnalysis& kernel, const RuleVerdict& entry) {
  rules::Score change;
  change.add(*entry.rule, entry.result);
  OrderedJson json = {
      {"rule", entry.rule->id},          {"name", entry.rule->name}, {"verdict", text(entry.result.verdict)},
      {"earned", change.earned},         {"lost", change.lost},      {"basis", entry.result.basis},
      {"findings", OrderedJson::array()}};
  json["suppressed"] = OrderedJson::array();
  for (const AnyFinding& each : all_findings(module, kernel, entry)) {
    OrderedJson finding = finding_json(module, *each.finding);
    finding["fingerprint"] = each.fingerprint;
    if (each.suppressed) {
      finding["suppressed_by"] = each.suppressed->by == Suppressed::By::comment ? "comment" : "baseline";
      finding["reason"] = each.suppressed->reason;
    }
    json[each.suppressed ? "suppressed" : "findings"].push_back(std::move(finding));
  }
  return json;
}

OrderedJson run_json(const rules::ObservedRun& run) {
  if (!run.not_run.empty()) return {{"not_run", run.not_run}};
  return {{"launches", run.launch_count},
          {"instructions", run.instruction_count},
          {"executed", run.executed_count},
          {"unexecuted_lines", run.unexecuted_lines},
          {"outputs", outputs_word(run.outputs)}};
}

OrderedJson kernel_json(const ptx::Module& module, const KernelAnalysis& kernel) {
  OrderedJson json = {{"name", kernel.name}};
  json["line"] = kernel.function == ptx::kNone
                     ? OrderedJson(nullptr)
                     : OrderedJson(module.position(module.functions[kernel.function].at).line);
  json["score"] = kernel.score.percent();
  json["earned"] = kernel.score.earned;
  json["lost"] = kernel.score.lost;
  json["cap"] = kernel.score.cap_percent;
  json["critical_count"] = kernel.count(Severity::critical);
  for (const Verdict verdict : {Verdict::survived, Verdict::refuted, Verdict::undecided, Verdict::not_applicable}) {
    json["counts"][std::string(text(verdict))] = kernel.count(verdict);
  }
  if (kernel.run) json["run"] = run_json(*kernel.run);
  json["verdicts"] = OrderedJson::array();
  for (const RuleVerdict& entry : kernel.verdicts) json["verdicts"].push_back(verdict_json(module, kernel, entry));
  return json;
}

// The fields of a file that are known before its kernels are examined.
void add_identity(const FileAnalysis& file, OrderedJson& json) {
  const ptx::Module& module = file.parsed.module;
  json["error"] = nullptr;
  json["xxh128"] = file.xxh128;
  json["version"] = std::to_string(module.version_major) + "." + std::to_string(module.version_minor);
  json["target"] = module.target;
}

void add_outcome(const FileAnalysis& file, OrderedJson& json) {
  json["score"] = file.score ? OrderedJson(file.score->percent()) : OrderedJson(nullptr);
  json["critical_count"] = file.critical_count();
}

OrderedJson file_json(const FileAnalysis& file) {
  OrderedJson json = {{"path", file.path}, {"exit_code", rules::exit_code(file.status)}};
  if (file.error) {
    json["error"] = file.error->message();
    return json;
  }
  const ptx::Module& module = file.parsed.module;
  add_identity(file, json);
  add_outcome(file, json);
  json["diagnostics"] = OrderedJson::array();
  for (const ptx::Diagnostic& diagnostic : file.parsed.diagnostics) {
    OrderedJson entry = {{"rule", ptx::rule(diagnostic.kind)}, {"kind", ptx::text(diagnostic.kind)}};
    entry.update(place_json(module, diagnostic.at));
    entry["message"] = diagnostic.message;
    json["diagnostics"].push_back(std::move(entry));
  }
  json["remarks"] = file.remarks;
  json["kernels"] = OrderedJson::array();
  for (const KernelAnalysis& kernel : file.kernels) json["kernels"].push_back(kernel_json(module, kernel));
  return json;
}

// JSON must be UTF-8; other bytes in a path or name become U+FFFD.
std::string dumped(const OrderedJson& json) {
  return printable_json(json.dump(2, ' ', false, OrderedJson::error_handler_t::replace));
}

OrderedJson tool_json() { return {{"name", "ptx-debug"}, {"version", tool_version()}}; }

class JsonDocument : public Document {
 public:
  explicit JsonDocument(const AnalysisOptions& options) : options_(options) {}

  std::string begin() override {
    OrderedJson json = {{"schema", "ptxkit-report-1"}, {"tool", tool_json()}};
    json["profile"] = options_.rules.profile == rules::Profile::pattern ? "pattern" : "root-cause";
    json["assume_align_bytes"] = options_.rules.assume_align_bytes;
    json["min_score"] = optional_json(options_.minimum_percent);
    json["fail_on"] = options_.fail_on ? OrderedJson(options_.fail_on->words()) : OrderedJson(nullptr);
    json["evidence"] = OrderedJson::array();
    if (options_.rules.evidence) {
      for (const rules::EvidenceFile& file : options_.rules.evidence->files)
        json["evidence"].push_back(description(file));
    }
    return opened(json) + ",\n\"files\": [";
  }

  std::string add(const FileAnalysis& file) override {
    std::string out;
    if (file.is_first_part) out = std::exchange(has_files_, true) ? ",\n" : "\n";
    if (file.is_first_part && file.is_last_part) return out + dumped(file_json(file));
    // Of a file in parts: fields that depend on all kernels come after them.
    if (file.is_first_part) {
      OrderedJson json = {{"path", file.path}};
      add_identity(file, json);
      json["diagnostics"] = OrderedJson::array();
      out += opened(json) + ",\n  \"kernels\": [";
    }
    for (const KernelAnalysis& kernel : file.kernels) {
      out += file.is_first_part && &kernel == &file.kernels.front() ? "\n" : ",\n";
      out += dumped(kernel_json(file.parsed.module, kernel));
    }
    if (file.is_last_part) {
      OrderedJson json = OrderedJson::object();
      add_outcome(file, json);
      json["remarks"] = file.remarks;
      json["exit_code"] = rules::exit_code(file.status);
      out += "\n  ],\n" + dumped(json).substr(2);
    }
    return out;
  }

  std::string end(const Totals& totals) override {
    const OrderedJson json = {{"rules",
                               {{"total", kRuleCount},
                                {"implemented", implemented_rules().count()},
                                {"wanted", options_.wanted.count()},
                                {"ran", totals.ran.count()}}},
                              {"exit_code", rules::exit_code(totals.status)}};
    return "\n],\n" + dumped(json).substr(2) + "\n";
  }

 private:
  // The object without its closing brace, so that more fields can follow.
  static std::string opened(const OrderedJson& json) {
    std::string text = dumped(json);
    text.resize(text.rfind('\n'));
    return text;
  }

  const AnalysisOptions& options_;
  bool has_files_ = false;
};

}  // namespace

std::unique_ptr<Document> json_document(const AnalysisOptions& options) {
  return std::make_unique<JsonDocument>(options);
}

std::string rules_json() {
  const RuleSet implemented = implemented_rules();
  OrderedJson json = {{"schema", "ptxkit-rules-1"}, {"tool", tool_json()}, {"rules", OrderedJson::array()}};
  for (const rules::RuleInfo& rule : rules::catalogue()) {
    json["rules"].push_back({{"id", rule.id},
                             {"name", rule.name},
                             {"category", rule.category},
                             {"points", rule.points},
                             {"severity", text(rule.severity)},
                             {"must_prove", rule.must_prove},
                             {"implemented", implemented[index_of(rule)]},
                             {"property", rule.property}});
  }
  return dumped(json) + "\n";
}

}  // namespace ptxkit::report
