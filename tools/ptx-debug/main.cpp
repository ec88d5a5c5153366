// ptx-debug: tries to refute PTX. This file holds the list of verbs, --version, --help and usage errors; each verb has
// a file of its own, verb_*.cpp.
#include <algorithm>
#include <cstdio>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <signal.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/analyze/identity.hpp"
#include "analyzer/evidence/evidence.hpp"
#include "analyzer/rules/score.hpp"
#include "support/file.hpp"
#include "support/printable.hpp"
#include "support/program.hpp"
#include "support/suggest.hpp"
#include "tools/ptx-debug/verb.hpp"

namespace ptxkit::tools {

void complain(std::string_view what) { fmt::print(stderr, "ptx-debug: {}\n", without_commands(printable(what))); }

void complain_of(const std::vector<std::string>& remarks) {
  for (const std::string& remark : remarks) complain(remark);
}

int usage_error(std::string_view verb, std::string_view what) {
  complain(what);
  fmt::print(stderr, "see 'ptx-debug {}{}--help'\n", verb, verb.empty() ? "" : " ");
  return rules::kUsageExitCode;
}

bool print(std::string_view text) { return print_bytes(without_commands(printable_lines(text))); }

bool print_bytes(std::string_view text) {
  const auto written = write_file("-", text);
  if (!written) complain(written.error().message());
  return written.has_value();
}

namespace {

std::string version_text() {
  std::string evidence;
  for (const rules::EvidenceFile& file : rules::shipped_evidence().files) {
    evidence += (evidence.empty() ? "" : ", ") + file.name;
  }
  return fmt::format("ptx-debug {}\n{} of {} rules, evidence: {}\n", report::tool_version(),
                     report::implemented_rules().count(), report::kRuleCount, evidence);
}

// The long names of all options of a subcommand, for suggestions.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

int explain_parse_error(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const CLI::App& at = chosen.empty() ? app : *chosen.front();
  const std::string verb = chosen.empty() ? "" : at.get_name();
  const auto is = [&](CLI::ExitCodes code) { return error.get_exit_code() == static_cast<int>(code); };
  if (is(CLI::ExitCodes::ExtrasError)) {
    for (const std::string& word : at.remaining()) {
      const std::string name = word.substr(0, word.find('='));
      if (name.starts_with("-")) {
        return usage_error(verb, fmt::format("unknown option '{}'{}", name, did_you_mean(name, option_names(at))));
      }
      return usage_error(verb, fmt::format("unexpected argument '{}'", word));
    }
  }
  std::string what = error.what();
  if (is(CLI::ExitCodes::RequiredError) && verb.empty()) {
    what = "no verb given";
    for (const std::string& word : app.remaining()) {
      const std::string meant = did_you_mean(word, option_names(app));
      if (!meant.empty()) what = fmt::format("unknown option '{}'{}", word, meant);
    }
  }
  if (is(CLI::ExitCodes::ArgumentMismatch)) {
    // "json was given a disallowed flag override"
    const size_t name_end = what.find(" was given a disallowed flag override");
    if (name_end != what.npos) what = fmt::format("--{} takes no value", what.substr(0, name_end));
  }
  return usage_error(verb, what);
}

// `--json` takes a file only if the word cannot be meant as a PTX file: `--json=F`, or a next word that ends in .json.
// Otherwise `ptx-debug analyze --json kernel.ptx` would overwrite the kernel.
std::vector<std::string> with_explicit_json(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--") {
      words.insert(words.end(), argv + i, argv + argc);
      break;
    }
    if (word == "--json" && words.size() && words.front() == "analyze") {
      const bool takes_next = i + 1 < argc && std::string_view(argv[i + 1]).ends_with(".json");
      word += takes_next ? fmt::format("={}", argv[++i]) : "=-";
    }
    words.push_back(std::move(word));
  }
  return words;
}

int run(int argc, char** argv) {
  CLI::App app("tries to refute PTX: hypotheses about each kernel, a score, and an exit code for CI", "ptx-debug");
  app.set_version_flag("--version", version_text, "version, rules and evidence of this program");
  app.require_subcommand(1);
  Action action;
  add_analyze(app, action);
  add_cfg(app, action);
  add_check(app, action);
  add_completion(app, action);
  add_cost(app, action);
  add_crash_analyze(app, action);
  add_diff(app, action);
  add_explain(app, action);
  add_gen_fkr(app, action);
  add_info(app, action);
  add_instrument(app, action);
  add_lsp(app, action);
  add_man(app, action);
  add_new(app, action);
  add_print(app, action);
  add_probe(app, action);
  add_reduce(app, action);
  add_rules(app, action);
  add_run(app, action);
  add_stats(app, action);
  add_trace(app, action);

  std::vector<std::string> words = with_explicit_json(argc, argv);
  std::vector<std::string> verbs;
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) {
    verbs.push_back(verb->get_name());
    // Otherwise CLI11 accepts any --flag=VALUE, and reads --falsify=of as true.
    for (CLI::Option* option : verb->get_options()) {
      if (option->get_items_expected_max() == 0) option->disable_flag_override();
    }
  }
  if (!words.empty() && !words.front().starts_with("-") && std::ranges::find(verbs, words.front()) == verbs.end()) {
    return usage_error("", fmt::format("unknown verb '{}'{}", words.front(), did_you_mean(words.front(), verbs)));
  }
  try {
    std::ranges::reverse(words);  // CLI11 reads the vector from its end
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    return print(chosen.empty() ? app.help() : chosen.front()->help(app.get_name()))
               ? 0
               : rules::exit_code(rules::Status::unreadable);
  } catch (const CLI::CallForVersion& version) {
    return print(version.what()) ? 0 : rules::exit_code(rules::Status::unreadable);
  } catch (const CLI::ParseError& error) {
    return explain_parse_error(app, error);
  }
  return action();
}

}  // namespace
}  // namespace ptxkit::tools

int main(int argc, char** argv) {
  // A file beyond `ulimit -f` is an error of write(). Programs that are started do not inherit a handler.
  ::signal(SIGXFSZ, [](int) {});
  constexpr auto kFailed = ptxkit::rules::Status::unreadable;
  return ptxkit::run_program("ptx-debug", ptxkit::rules::exit_code(kFailed), ptxkit::tools::run, argc, argv);
}
