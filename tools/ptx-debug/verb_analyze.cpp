// `ptx-debug analyze FILE...`: checks every kernel of every file against the catalogue, writes a report and returns an
// exit code.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/analyze/selection.hpp"
#include "analyzer/analyze/suppression.hpp"
#include "analyzer/evidence/evidence.hpp"
#include "analyzer/report/baseline.hpp"
#include "analyzer/report/github.hpp"
#include "analyzer/report/html.hpp"
#include "analyzer/report/json.hpp"
#include "analyzer/report/sarif.hpp"
#include "analyzer/report/text.hpp"
#include "runtime/launch/differential.hpp"
#include "runtime/launch/launch_file.hpp"
#include "runtime/launch/launch_file_use.hpp"
#include "support/file.hpp"
#include "support/json_depth.hpp"
#include "support/plural.hpp"
#include "support/spool.hpp"
#include "support/suggest.hpp"
#include "tools/ptx-debug/assembler.hpp"
#include "tools/ptx-debug/config.hpp"
#include "tools/ptx-debug/inputs.hpp"
#include "tools/ptx-debug/name_pattern.hpp"
#include "tools/ptx-debug/observe_kernels.hpp"
#include "tools/ptx-debug/option_values.hpp"
#include "tools/ptx-debug/outputs.hpp"
#include "tools/ptx-debug/replay_findings.hpp"
#include "tools/ptx-debug/sources.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {
namespace {

constexpr uint32_t kLargestAlignmentBytes = 1 << 16;

// Files with more kernels are judged and written in parts of this size.
constexpr size_t kPartKernels = 500;

// The options as given. All are checked before the first file is read.
struct Arguments {
  Inputs inputs;
  report::SelectionWords selection;
  std::optional<double> minimum_percent;
  std::string fail_on;
  std::string format = "text";    // of standard output
  std::string html, json, sarif;  // paths; empty: none
  std::string baseline, write_baseline;
  std::string colour = "auto";
  std::string profile = "root-cause";
  std::vector<std::string> evidence;
  std::string kernel;
  std::vector<std::string> launch;
  uint32_t assume_align_bytes = 0;
  bool release = false, differential = false, replay = false;
  bool run = false, no_run = false;
  bool no_prove = false;
  uint32_t prove_steps = rules::kProveSteps;
  double run_seconds = 0.5;
  std::string ptxas;
  std::vector<std::string> source_roots;
  bool verbose = false;
  std::string config;
  bool no_config = false;
};

// https://no-color.org: any non-empty value turns colour off.
bool wants_colour(const std::string& colour) {
  if (colour != "auto") return colour == "always";
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) && !(no_color && *no_color) && terminal && std::string_view(terminal) != "dumb";
}

// Returns an error message where `word` is not one of `known`.
std::optional<std::string> unknown_word(std::string_view option, const std::string& word,
                                        const std::vector<std::string>& known) {
  if (std::ranges::find(known, word) != known.end()) return std::nullopt;
  return fmt::format("{}: expected {}, found '{}'{}", option, fmt::join(known, ", "), word, did_you_mean(word, known));
}

std::vector<Output> outputs_of(const Arguments& arguments) {
  return {{"--json", arguments.json},
          {"--html", arguments.html},
          {"--sarif", arguments.sarif},
          {"--write-baseline", arguments.write_baseline}};
}

// Returns an error message for invalid arguments; nothing otherwise.
std::optional<std::string> fault(const Arguments& arguments) {
  if (arguments.assume_align_bytes != 0 && !std::has_single_bit(arguments.assume_align_bytes)) {
    return fmt::format("--assume-align: expected a power of two up to {}, found {}", kLargestAlignmentBytes,
                       arguments.assume_align_bytes);
  }
  if (auto what = unknown_word("--profile", arguments.profile, {"root-cause", "pattern"})) return what;
  if (auto what = unknown_word("--format", arguments.format, {"text", "json", "sarif", "github"})) return what;
  if (auto what = unknown_word("--color", arguments.colour, {"auto", "always", "never"})) return what;
  if (arguments.run && arguments.no_run) return "--run and --no-run: give one of them";
  const std::vector<Output> outputs = outputs_of(arguments);
  for (const auto& [option, path] : outputs) {
    if (path == "-" && option != "--json")
      return fmt::format("{}: expected a file, found '-'; standard output gets what --format says", option);
  }
  for (const std::string& root : arguments.source_roots) {
    if (std::error_code ignored; !std::filesystem::is_directory(root, ignored))
      return fmt::format("--source-root: expected a folder, found '{}'", root);
  }
  if (auto what = fault(outputs, arguments.inputs.words)) return what;
  return fault(arguments.inputs);
}

// The documents of one report, which grow as files are judged. The one for standard output is printed piece by piece.
// Those for files are kept until the end, because a file is replaced as a whole or not at all.
class Documents {
 public:
  Documents(const Arguments& arguments, const report::AnalysisOptions& options, const report::SourceLine& source_line) {
    const bool is_json = arguments.json == "-" || arguments.format == "json";  // "-": --json alone
    printed_ = is_json                       ? report::json_document(options)
               : arguments.format == "sarif" ? report::sarif_document()
               : arguments.format == "github"
                   ? report::annotation_document(source_line)
                   : report::text_document({wants_colour(arguments.colour), arguments.verbose, source_line});
    if (arguments.json != "-") add_report(arguments.json, report::json_document(options));
    add_report(arguments.sarif, report::sarif_document());
    add_report(arguments.write_baseline, report::baseline_document());
    pending_ = printed_->begin();
  }

  void add(const report::FileAnalysis& file) {
    totals_.add(file);
    has_examined_ |= !file.kernels.empty();
    has_skipped_ |= file.skipped_kernel_count != 0;
    pending_ += printed_->add(file);
    if (has_examined_) flush();
    for (ReportFile& each : reports_) each.text.append(each.document->add(file));
  }

  // Writes the ends of all documents. Returns whether everything was written.
  bool end() {
    pending_ += printed_->end(totals_);
    flush();
    for (ReportFile& each : reports_) {
      each.text.append(each.document->end(totals_));
      const auto saved = each.text.save(each.path);
      if (!saved) complain(saved.error().message());
      is_written_ = is_written_ && saved.has_value();
    }
    return is_written_;
  }

  // Whether --kernel matched no kernel; then nothing was printed.
  bool has_skipped_all() const { return has_skipped_ && !has_examined_; }
  const report::Totals& totals() const { return totals_; }

 private:
  struct ReportFile {
    std::string path;
    std::unique_ptr<report::Document> document;
    Spool text;
  };

  void add_report(const std::string& path, std::unique_ptr<report::Document> document) {
    if (path.empty()) return;
    Spool text(path);
    text.append(document->begin());
    reports_.push_back({path, std::move(document), std::move(text)});
  }

  void flush() {
    is_written_ = is_written_ && print_bytes(pending_);  // the first failure alone is reported
    pending_.clear();
  }

  report::Totals totals_;
  std::unique_ptr<report::Document> printed_;
  std::string pending_;  // part of `printed_` that is not yet printed
  std::vector<ReportFile> reports_;
  bool has_examined_ = false, has_skipped_ = false;
  bool is_written_ = true;
};

Result<report::Baseline> read_baseline(const std::string& path) {
  if (path.empty()) return report::Baseline();
  const auto text = read_file(path, kMaxJsonBytes);
  if (!text) return tl::unexpected(text.error());
  return report::Baseline::read(*text, path);
}

// Whether a rule is open that the solver may decide.
bool asks_solver(const report::KernelAnalysis& kernel) {
  return std::ranges::any_of(kernel.verdicts, [](const report::RuleVerdict& verdict) {
    static constexpr std::string_view kRules[] = {"F025", "F036", "F051", "F058", "F070", "F102"};
    return verdict.result.verdict == rules::Verdict::undecided &&
           std::ranges::find(kRules, verdict.rule->id) != std::end(kRules);
  });
}

int analyze_files(const Arguments& arguments) {
  if (const auto what = fault(arguments)) return usage_error("analyze", *what);
  const auto wanted = report::select_rules(arguments.selection);
  if (!wanted) return usage_error("analyze", wanted.error().message());

  report::AnalysisOptions options;
  options.wanted = *wanted;
  options.minimum_percent = arguments.minimum_percent;
  if (!arguments.fail_on.empty()) {
    const auto fail_on = rules::FailOn::read(arguments.fail_on);
    if (!fail_on) return usage_error("analyze", "--fail-on: " + fail_on.error().what);
    options.fail_on = *fail_on;
  }
  if (!arguments.kernel.empty()) {
    auto pattern = NamePattern::parse("--kernel", arguments.kernel);
    if (!pattern) return usage_error("analyze", pattern.error().message());
    options.wants_kernel = [pattern = std::move(*pattern)](std::string_view name) { return pattern.matches(name); };
  }
  if (const auto can = check_all_writable(outputs_of(arguments)); !can) {
    complain(can.error().message());
    return rules::exit_code(rules::Status::unreadable);
  }
  // The sandbox would not let it be loaded.
  std::shared_ptr<const prove::Solver> solver;
  std::string no_solver;
  if (!arguments.no_prove) {
    if (auto found = prove::Solver::open())
      solver = *found;
    else
      no_solver = found.error().message();
  }
  options.rules.solver = solver.get();
  options.rules.prove_steps = arguments.prove_steps;
  SandboxNeeds needs{{}, !arguments.ptxas.empty()};
  for (const Output& output : outputs_of(arguments)) needs.outputs.push_back(output.path);
  if (const auto code = begin_sandbox(arguments.inputs.sandbox, needs,
                                      {arguments.differential ? "--differential" : "", arguments.verbose}))
    return *code;
  rules::EvidenceSet evidence = rules::shipped_evidence();
  for (const std::string& path : arguments.evidence) {
    auto file = rules::load_evidence(path);
    if (!file) {
      complain(file.error().message());
      return rules::exit_code(rules::Status::unreadable);
    }
    evidence.files.push_back(std::move(*file));
  }
  auto baseline = read_baseline(arguments.baseline);
  if (!baseline) {
    complain(baseline.error().message());
    return rules::exit_code(rules::Status::unreadable);
  }
  options.rules.evidence = &evidence;
  options.rules.assume_align_bytes = arguments.assume_align_bytes;
  options.rules.profile = arguments.profile == "pattern" ? rules::Profile::pattern : rules::Profile::root_cause;

  rules::LaunchSet launch;
  for (const std::string& path : arguments.launch) {
    if (const auto read = read_launch_file(path, launch); !read) {
      complain(read.error().message());
      return rules::exit_code(rules::Status::unreadable);
    }
  }
  options.rules.launch = &launch;
  options.rules.release = arguments.release;
  std::optional<Assembler> assembler;
  if (!arguments.ptxas.empty()) {
    auto found = Assembler::at(arguments.ptxas);
    if (!found) return usage_error("analyze", found.error().message());
    assembler.emplace(std::move(*found));
    options.rules.registers = [&](const ptx::Module& module, ptx::FunctionId kernel) {
      return assembler->registers(module, std::string(module.functions[kernel].name));
    };
  }
  if (arguments.differential) {
    options.rules.differential = [&](const ptx::Module& module, ptx::FunctionId kernel) {
      const auto facts = launch.find(module.functions[kernel].name);
      const flow::LaunchFacts* const promised = facts == launch.end() ? nullptr : &facts->second;
      rules::Differential found = compare_schedules(module, kernel, promised);
      if (found.outcome != rules::Differential::Outcome::same) return found;
      rules::Differential levels = compare_with_gpu(module, kernel, promised);
      if (levels.outcome == rules::Differential::Outcome::same)
        levels.what = fmt::format("{}; {}", found.what, levels.what);
      if (levels.outcome == rules::Differential::Outcome::not_run)
        levels.what = fmt::format("no levels of a GPU's compiler: {}; {} agree", levels.what, found.what);
      return levels;
    };
  }

  const RunChoice runs{arguments.no_run, arguments.run, arguments.run_seconds, arguments.launch};
  LaunchFileUse promises(launch);
  SourceFiles sources(arguments.source_roots);
  const auto source_line = [&](const std::string& ptx, const std::string& file, uint32_t line) {
    return sources.line(ptx, file, line);
  };
  Documents documents(arguments, options, source_line);
  const report::SourceText source_text = [&](const auto& ptx, const auto& file) { return sources.text(ptx, file); };
  std::optional<report::HtmlReport> page;
  if (!arguments.html.empty()) page.emplace(options, source_text, arguments.html);
  bool is_any_open = false;
  const auto add = [&](const std::shared_ptr<report::FileAnalysis>& file) {
    is_any_open = is_any_open || std::ranges::any_of(file->kernels, asks_solver);
    documents.add(*file);
    if (page) page->add(file);
  };
  for_each_image(
      arguments.inputs,
      [&](container::PtxImage image, const std::string&) {
        auto file = std::make_shared<report::FileAnalysis>(
            report::analyze(std::move(image.text), std::move(image.name), options, kPartKernels));
        observe_kernels(*file, options, runs);
        if (arguments.replay) replay_findings(*file, options);
        // Only the HTML report draws the code.
        if (!page && file->is_last_part) report::release_statements(*file);
        return file;
      },
      [&](const std::shared_ptr<report::FileAnalysis>& file) {
        complain_of(promises.check_module(file->parsed.module));
        report::Suppressions suppressions(*file, *baseline, source_line);
        do {
          if (!file->is_first_part) {
            observe_kernels(*file, options, runs);
            if (arguments.replay) replay_findings(*file, options);
          }
          suppressions.settle(options);
          add(file);
        } while (report::next_part(*file, options, kPartKernels));
      },
      [&](const std::string& path, const Error& error) {
        complain(error.message());
        add(std::make_shared<report::FileAnalysis>(report::unreadable(path, error)));
      });
  complain_of(promises.unused_files());
  if (!no_solver.empty() && is_any_open) complain(fmt::format("nothing was proved by a solver: {}", no_solver));
  if (documents.has_skipped_all()) {
    return usage_error("analyze", fmt::format("--kernel: no kernel matches '{}'", arguments.kernel));
  }
  if (const size_t gone = baseline->unmatched_count()) {
    complain(fmt::format("{}: {} of {} findings no longer occur", arguments.baseline, gone, baseline->size()));
  }
  if (const size_t outside = sources.outside_count(); outside != 0 && arguments.verbose) {
    complain(
        fmt::format("{} outside of the PTX's folder and the working folder {} not shown; --source-root DIR shows "
                    "those below DIR",
                    plural(outside, "source"), outside == 1 ? "is" : "are"));
  }
  bool written = documents.end();
  if (page) {
    const auto saved = page->save(arguments.html);
    if (!saved) complain(saved.error().message());
    written = written && saved.has_value();
  }
  return rules::exit_code(written ? documents.totals().status : rules::Status::unreadable);
}

// Applies a found config file to the options that the command line did not set. Reports settings that are skipped.
Result<void> apply_found_config(CLI::App& verb) {
  const FoundConfig found = find_config();
  if (found.path.empty()) return {};
  if (!found.refusal.empty()) {
    complain(fmt::format("{} is ignored: {}; to use it, name it with --config", found.path, found.refusal));
    return {};
  }
  const auto left_out = apply_config(verb, found);
  if (!left_out) return tl::unexpected(left_out.error());
  complain(fmt::format("options from {}{}", found.path,
                       left_out->empty()
                           ? ""
                           : fmt::format(", without {}: a configuration that is found cannot set programs, outputs or "
                                         "files outside of its project; to use all of it, name it with --config",
                                         fmt::join(*left_out, ", "))));
  return {};
}

int analyze_configured(CLI::App& verb, Arguments& arguments) {
  const auto applied = !arguments.config.empty() ? apply_config(verb, arguments.config)
                       : !arguments.no_config    ? apply_found_config(verb)
                                                 : Result<void>();
  if (!applied) {
    complain(applied.error().message());
    return rules::kUsageExitCode;
  }
  return analyze_files(arguments);
}

}  // namespace

void add_analyze(CLI::App& app, Action& action) {
  Verb verb(app, "analyze", "try to refute every kernel of FILE...");
  const auto arguments = std::make_shared<Arguments>();
  add_inputs(verb, arguments->inputs);
  verb.flag("--falsify", arguments->selection.falsify, "run all rules; default: those of critical and high severity");
  verb.option("--min-score", arguments->minimum_percent, "exit 2 where the score is below N (0 to 100)")
      .type_name("N")
      .check(number(100));
  verb.option("--fail-on", arguments->fail_on,
              "exit 2, or 3 if it is critical, on a finding of at least this severity and certainty; only --min-score "
              "counts beside it; none: no finding counts")
      .type_name("SEVERITY[:TIER]");
  verb.option("--json", arguments->json,
              "write JSON to standard output instead of the text; with =F or a name in .json: to that file, and the "
              "text as well")
      .type_name("[F]")
      .check(file_name());
  verb.option("--format", arguments->format, "format of standard output; github: annotations of GitHub Actions")
      .type_name("text|json|sarif|github");
  verb.option("--html", arguments->html, "write the report as one HTML file as well").type_name("F").check(file_name());
  verb.option("--sarif", arguments->sarif, "write SARIF 2.1.0 to F as well").type_name("F").check(file_name());
  verb.option("--baseline", arguments->baseline, "do not count the findings that F lists")
      .type_name("F")
      .check(file_name());
  verb.option("--write-baseline", arguments->write_baseline,
              "write the findings of this run to F, for --baseline of later runs")
      .type_name("F")
      .check(file_name());
  verb.option("--color", arguments->colour, "colour the text; auto: on a terminal, unless NO_COLOR is set")
      .type_name("auto|always|never");
  verb.option("--profile", arguments->profile,
              "root-cause: F021, F081 and F082 judge the alignment of each site; pattern: every site is critical")
      .type_name("root-cause|pattern");
  verb.option("--evidence", arguments->evidence, "one more evidence file, in addition to those in the program")
      .type_name("F")
      .repeated();
  verb.option("--select", arguments->selection.select, "run only these rules (ids or names, separated by commas)")
      .type_name("RULES")
      .repeated()
      .comma_separated();
  verb.option("--ignore", arguments->selection.ignore, "do not run these rules")
      .type_name("RULES")
      .repeated()
      .comma_separated();
  verb.option("--check", arguments->selection.check,
              fmt::format("run only the rules of a group: {}", fmt::join(report::check_groups(), ", ")))
      .type_name("GROUPS")
      .repeated()
      .comma_separated();
  verb.option("--kernel", arguments->kernel,
              "examine only kernels whose name matches somewhere (ECMAScript, no back references)")
      .type_name("RE");
  verb.option("--assume-align", arguments->assume_align_bytes,
              "alignment in bytes of every pointer parameter, in place of the language's contract")
      .type_name("N")
      .check(whole_number(kLargestAlignmentBytes));
  verb.option("--launch", arguments->launch, "a launch file: what the host promises of each entry's launches")
      .type_name("F")
      .repeated();
  verb.option("--source-root", arguments->source_roots,
              "also show source lines of files below DIR; always shown: those below the folder of the PTX and the "
              "working folder")
      .type_name("DIR")
      .repeated();
  verb.option("--ptxas", arguments->ptxas, "an assembler to ask for the registers of each kernel (F092)")
      .type_name("PROGRAM");
  verb.flag("--release", arguments->release, "the kernels are a release build: F096 requires no debug buffer");
  verb.flag("--differential", arguments->differential,
            "run every kernel on generated inputs in several ways and compare the results (F084)");
  verb.flag("--replay", arguments->replay, "replay high and critical findings on the emulator");
  verb.flag("--run", arguments->run,
            "run every kernel on the emulator, on launches made up where no launch file gives grid and block");
  verb.flag("--no-run", arguments->no_run, "run no kernel; default: run those whose grid and block --launch gives");
  verb.option("--run-seconds", arguments->run_seconds,
              "processor time of the runs of a kernel, in nominal seconds of 980,000 warp instructions (0.5); a text "
              "gets 20 times as much")
      .type_name("S")
      .check(number(3600));
  verb.flag("--no-prove", arguments->no_prove, "ask no solver (Z3) about what the rules leave undecided");
  verb.option("--prove-steps", arguments->prove_steps, "how many steps the solver may take for a question (300000)")
      .type_name("N")
      .check(whole_number(4'000'000'000));
  verb.flag("-v,--verbose", arguments->verbose, "also print notes, and the verdict of every rule");
  verb.option(
          "--config", arguments->config,
          fmt::format("read options from F instead of the nearest {} of the project around this folder", kConfigName))
      .type_name("F")
      .check(file_name());
  verb.flag("--no-config", arguments->no_config, "use only options of the command line");
  verb.callback([arguments, verb, &action] {
    action = [arguments, verb] { return analyze_configured(verb.app(), *arguments); };
  });
}

}  // namespace ptxkit::tools
