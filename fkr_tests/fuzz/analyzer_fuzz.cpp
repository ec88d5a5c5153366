// Fuzzes everything behind the front end that reads PTX: the rules and, selected by the length of the text, one of
// report formats, statistics, pictures and instrumentation. They must return; the report must be the same twice; JSON
// output must parse; an instrumented text must have no errors and a readable marker map.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <nlohmann/json.hpp>

#include "analyzer/analyze/suppression.hpp"
#include "analyzer/evidence/evidence.hpp"
#include "analyzer/inspect/difference.hpp"
#include "analyzer/inspect/flow_picture.hpp"
#include "analyzer/inspect/module_info.hpp"
#include "analyzer/inspect/statistics.hpp"
#include "analyzer/instrument/instrument.hpp"
#include "analyzer/report/baseline.hpp"
#include "analyzer/report/github.hpp"
#include "analyzer/report/html.hpp"
#include "analyzer/report/json.hpp"
#include "analyzer/report/sarif.hpp"
#include "analyzer/report/text.hpp"
#include "fkr_tests/fuzz/ptx_damage.hpp"

namespace ptxkit {
namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "analyzer_fuzz: %s\n", what);
  std::abort();
}

const report::AnalysisOptions& options() {
  static const report::AnalysisOptions options = [] {
    report::AnalysisOptions all;
    all.rules.evidence = &rules::shipped_evidence();
    return all;
  }();
  return options;
}

report::FileAnalysis judged(const std::string& text) {
  report::FileAnalysis file = report::analyze(text, "fuzz.ptx", options());
  report::Baseline baseline;
  report::suppress(file, options(), baseline, {});
  return file;
}

void check_instrumented(const ptx::Module& module) {
  const auto made = instrument::instrument(module, {.kinds = ~0u, .records = 64});
  if (!made) return require(!made.error().what.empty(), "an error of instrument without words");
  require(ptx::parse(made->ptx, "instrumented.ptx").diagnostics.empty(), "instrumented text has mistakes");
  const auto map = instrument::parse_marker_map(instrument::to_json(made->map), "map");
  require(map && map->markers.size() == made->map.markers.size(), "a marker map that cannot be read");
}

std::string written(std::unique_ptr<report::Document> document, const report::FileAnalysis& file) {
  return report::whole(std::move(document), {&file, 1});
}

void check_json(const report::FileAnalysis& file, const std::string& text) {
  const std::string json = written(report::json_document(options()), file);
  require(nlohmann::json::accept(json), "the report is no JSON");
  require(written(report::json_document(options()), judged(text)) == json, "two reports of one text");
}

void check_sarif(const report::FileAnalysis& file) {
  require(nlohmann::json::accept(written(report::sarif_document(), file)), "SARIF that is no JSON");
  require(nlohmann::json::accept(written(report::baseline_document(), file)), "a baseline that is no JSON");
}

void check_texts(const report::FileAnalysis& file) {
  (void)written(report::text_document({.colour = true, .verbose = true}), file);
  (void)written(report::annotation_document({}), file);
  (void)report::to_html({&file, 1}, options(), {});
}

void check_module(const ptx::Module& module) {
  require(nlohmann::json::accept(inspect::info_json(module)), "module info that is no JSON");
  require(nlohmann::json::accept(inspect::statistics_json(module)), "statistics that are no JSON");
  require(inspect::difference(module, module).same, "a module unlike itself");
  for (const ptx::Function& function : module.functions) {
    if (function.has_body) (void)inspect::flow_dot(module, function);
  }
  check_instrumented(module);
}

}  // namespace
}  // namespace ptxkit

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ptxkit;
  if (size > testing::kMaxFuzzedBytes) return -1;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const report::FileAnalysis file = judged(text);
  // Running all of them would take ten times as long as the rules.
  switch (size % 4) {
    case 0:
      check_json(file, text);
      break;
    case 1:
      check_sarif(file);
      break;
    case 2:
      check_texts(file);
      break;
    default:
      if (file.parsed.diagnostics.empty()) check_module(file.parsed.module);
  }
  return 0;
}
