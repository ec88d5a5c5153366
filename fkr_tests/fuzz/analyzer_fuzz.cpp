// Any text through everything that reads PTX behind the front end: the rules and every format of their report, the
// statistics, pictures and instrumentation. It returns; the report is the same twice; what is written as JSON is JSON;
// an instrumented text has no mistakes, and its marker map can be read.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <nlohmann/json.hpp>

#include "analyzer/evidence/evidence.hpp"
#include "analyzer/inspect/difference.hpp"
#include "analyzer/inspect/flow_picture.hpp"
#include "analyzer/inspect/module_info.hpp"
#include "analyzer/inspect/statistics.hpp"
#include "analyzer/instrument/instrument.hpp"
#include "analyzer/report/github.hpp"
#include "analyzer/report/html.hpp"
#include "analyzer/report/json.hpp"
#include "analyzer/report/sarif.hpp"
#include "analyzer/report/suppression.hpp"
#include "analyzer/report/text.hpp"

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

}  // namespace
}  // namespace ptxkit

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ptxkit;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const report::FileAnalysis file = judged(text), again = judged(text);
  const auto written = [&](std::unique_ptr<report::Document> document) {
    return report::whole(std::move(document), {&file, 1});
  };
  const std::string json = written(report::json_document(options()));
  require(nlohmann::json::accept(json), "the report is no JSON");
  require(report::whole(report::json_document(options()), {&again, 1}) == json, "two reports of one text");
  require(nlohmann::json::accept(written(report::sarif_document([](auto) { return std::string_view(); }))),
          "SARIF that is no JSON");
  require(nlohmann::json::accept(written(report::baseline_document())), "a baseline that is no JSON");
  (void)written(report::text_document({.colour = true, .verbose = true}));
  (void)written(report::annotation_document({}));
  (void)report::to_html({&file, 1}, options(), {});
  if (!file.parsed.diagnostics.empty()) return 0;
  const ptx::Module& module = file.parsed.module;
  require(nlohmann::json::accept(inspect::info_json(module)), "module info that is no JSON");
  require(nlohmann::json::accept(inspect::statistics_json(module)), "statistics that are no JSON");
  require(inspect::difference(module, module).same, "a module unlike itself");
  for (const ptx::Function& function : module.functions) {
    if (function.has_body) (void)inspect::flow_dot(module, function);
  }
  check_instrumented(module);
  return 0;
}
