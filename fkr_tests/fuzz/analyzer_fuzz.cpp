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

report::Report judged(const std::string& text) {
  report::Report report;
  report.options.rules.evidence = &rules::shipped_evidence();
  report.files.push_back(report::analyze(text, "fuzz.ptx", report.options));
  report::Baseline baseline;
  report::suppress(report.files.front(), report.options, baseline, {});
  return report;
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
  const report::Report report = judged(text);
  const ptx::Module& module = report.files.front().parsed.module;
  const std::string json = report::to_json(report);
  require(nlohmann::json::accept(json), "the report is no JSON");
  require(report::to_json(judged(text)) == json, "two reports of one text");
  require(nlohmann::json::accept(report::to_sarif(report, [](std::string_view) { return std::string_view(); })),
          "SARIF that is no JSON");
  require(nlohmann::json::accept(report::Baseline::write(report)), "a baseline that is no JSON");
  (void)report::to_text(report, {.colour = true, .verbose = true});
  (void)report::to_github(report, {});
  (void)report::to_html(report, {});
  if (!report.files.front().parsed.diagnostics.empty()) return 0;
  require(nlohmann::json::accept(inspect::info_json(module)), "module info that is no JSON");
  require(nlohmann::json::accept(inspect::statistics_json(module)), "statistics that are no JSON");
  require(inspect::difference(module, module).same, "a module unlike itself");
  for (const ptx::Function& function : module.functions) {
    if (function.has_body) (void)inspect::flow_dot(module, function);
  }
  check_instrumented(module);
  return 0;
}
