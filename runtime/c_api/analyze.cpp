// ptxkit_analyze(): the catalogue on one text.
#include <algorithm>
#include <bit>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/analyze/selection.hpp"
#include "analyzer/analyze/suppression.hpp"
#include "analyzer/evidence/evidence.hpp"
#include "analyzer/report/document.hpp"
#include "analyzer/report/json.hpp"
#include "analyzer/report/sarif.hpp"
#include "analyzer/report/text.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/fail_on.hpp"
#include "analyzer/rules/score.hpp"
#include "runtime/c_api/json_options.hpp"
#include "runtime/c_api/ptxkit.h"
#include "runtime/c_api/status.hpp"
#include "runtime/launch/launch_file.hpp"
#include "runtime/launch/launch_file_use.hpp"

namespace ptxkit::c_api {
namespace {

constexpr uint64_t kLargestAlignmentBytes = 1 << 16;

// The options as the analyzer takes them. `launch` is referred to by `analysis`, so it does not move.
struct Wanted {
  std::string name, format;
  rules::LaunchSet launch;
  report::AnalysisOptions analysis;
  bool is_verbose = false;
};

Answer<> read_rules(const JsonOptions& json, Wanted& wanted) {
  report::SelectionWords words;
  auto falsify = json.boolean("falsify", false);
  auto select = json.strings("select"), ignore = json.strings("ignore"), check = json.strings("check");
  if (!falsify) return tl::unexpected(falsify.error());
  for (const auto* list : {&select, &ignore, &check})
    if (!*list) return tl::unexpected(list->error());
  words = {*falsify, std::move(*select), std::move(*check), std::move(*ignore)};
  const auto rules = report::select_rules(words);
  if (!rules) return refuse(PTXKIT_INVALID_VALUE, "options: " + rules.error().what);
  wanted.analysis.wanted = *rules;
  auto kernels = json.strings("kernels");
  if (!kernels) return tl::unexpected(kernels.error());
  if (!kernels->empty()) {
    wanted.analysis.wants_kernel = [names = std::move(*kernels)](std::string_view name) {
      return std::ranges::find(names, name) != names.end();
    };
  }
  return {};
}

Answer<> read_limits(const JsonOptions& json, Wanted& wanted) {
  if (json.has("min_score")) {
    const auto score = json.real("min_score", 0, 100);
    if (!score) return tl::unexpected(score.error());
    wanted.analysis.minimum_percent = *score;
  }
  const auto fail_on = json.string("fail_on", "");
  if (!fail_on) return tl::unexpected(fail_on.error());
  if (!fail_on->empty()) {
    const auto limit = rules::FailOn::read(*fail_on);
    if (!limit) return refuse(PTXKIT_INVALID_VALUE, "options: 'fail_on': " + limit.error().what);
    wanted.analysis.fail_on = *limit;
  }
  return {};
}

Answer<> read_facts(const JsonOptions& json, Wanted& wanted) {
  const auto align = json.number("assume_align", 0, kLargestAlignmentBytes);
  if (!align) return tl::unexpected(align.error());
  if (*align != 0 && !std::has_single_bit(*align))
    return refuse(PTXKIT_INVALID_VALUE,
                  "options: 'assume_align': expected a power of two, found " + std::to_string(*align));
  wanted.analysis.rules.assume_align_bytes = static_cast<uint32_t>(*align);
  const auto profile = json.string("profile", "root-cause");
  if (!profile) return tl::unexpected(profile.error());
  if (*profile != "root-cause" && *profile != "pattern")
    return refuse(PTXKIT_INVALID_VALUE, "options: 'profile': expected root-cause or pattern, found '" + *profile + "'");
  wanted.analysis.rules.profile = *profile == "pattern" ? rules::Profile::pattern : rules::Profile::root_cause;
  const auto release = json.boolean("release", false);
  if (!release) return tl::unexpected(release.error());
  wanted.analysis.rules.release = *release;
  const auto launch = json.object("launch");
  if (!launch) return tl::unexpected(launch.error());
  if (!launch->empty()) {
    if (const auto read = parse_launch_text(*launch, "options: launch", wanted.launch); !read)
      return refuse(PTXKIT_INVALID_VALUE, read.error());
    wanted.analysis.rules.launch = &wanted.launch;
  }
  wanted.analysis.rules.evidence = &rules::shipped_evidence();
  return {};
}

Answer<> read_wanted(const char* options, Wanted& wanted) {
  const auto json =
      JsonOptions::read(options, {"name", "format", "falsify", "select", "ignore", "check", "kernels", "launch",
                                  "assume_align", "profile", "release", "fail_on", "min_score", "verbose"});
  if (!json) return tl::unexpected(json.error());
  auto name = json->string("name", "input.ptx"), format = json->string("format", "json");
  const auto verbose = json->boolean("verbose", false);
  if (!name) return tl::unexpected(name.error());
  if (!format) return tl::unexpected(format.error());
  if (!verbose) return tl::unexpected(verbose.error());
  if (*format != "json" && *format != "sarif" && *format != "text")
    return refuse(PTXKIT_INVALID_VALUE, "options: 'format': expected json, sarif or text, found '" + *format + "'");
  wanted.name = std::move(*name);
  wanted.format = std::move(*format);
  wanted.is_verbose = *verbose;
  for (const auto read : {read_rules, read_limits, read_facts})
    if (auto done = read(*json, wanted); !done) return done;
  return {};
}

Answer<> analyze(const char* text, size_t text_bytes, const char* options, char** report, int* exit_code) {
  if (auto given = require(report, "report"); !given) return given;
  *report = nullptr;
  if (text == nullptr && text_bytes != 0) return require(text, "text");
  Wanted wanted;
  if (auto read = read_wanted(options, wanted); !read) return read;
  report::FileAnalysis file =
      report::analyze(text_bytes == 0 ? std::string() : std::string(text, text_bytes), wanted.name, wanted.analysis);
  if (file.kernels.empty() && file.skipped_kernel_count != 0)
    return refuse(PTXKIT_INVALID_VALUE, "options: 'kernels': the text has none of these");
  if (file.parsed.diagnostics.empty()) {
    const std::vector<std::string> remarks = launch_file_remarks(wanted.launch, file.parsed.module);
    if (!remarks.empty()) return refuse(PTXKIT_INVALID_VALUE, "options: 'launch': " + remarks.front());
  }
  report::Baseline none;
  report::suppress(file, wanted.analysis, none, {});
  auto document = wanted.format == "json"    ? report::json_document(wanted.analysis)
                  : wanted.format == "sarif" ? report::sarif_document()
                                             : report::text_document({.verbose = wanted.is_verbose});
  *report = new_string(report::whole(std::move(document), {&file, 1}));
  if (exit_code != nullptr) *exit_code = rules::exit_code(file.status);
  return {};
}

}  // namespace
}  // namespace ptxkit::c_api

ptxkit_status ptxkit_analyze(const char* text, size_t text_bytes, const char* options, char** report, int* exit_code) {
  return ptxkit::c_api::call(__func__,
                             [&] { return ptxkit::c_api::analyze(text, text_bytes, options, report, exit_code); });
}
