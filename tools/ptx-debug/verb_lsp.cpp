// `ptx-debug lsp`: a language server for PTX on standard input and output.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/analyze/selection.hpp"
#include "analyzer/evidence/evidence.hpp"
#include "analyzer/prove/solver.hpp"
#include "analyzer/rules/score.hpp"
#include "runtime/launch/launch_file.hpp"
#include "tools/ptx-debug/lsp/server.hpp"
#include "tools/ptx-debug/sandbox_option.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {
namespace {

struct Arguments {
  report::SelectionWords selection;
  std::vector<std::string> launch;
  double seconds = 10;
  bool no_prove = false;
  SandboxOption sandbox = {};
};

int serve(const Arguments& arguments) {
  if (const auto what = fault(arguments.sandbox)) return usage_error("lsp", *what);
  const auto wanted = report::select_rules(arguments.selection);
  if (!wanted) return usage_error("lsp", wanted.error().message());
  rules::LaunchSet launch;
  for (const std::string& path : arguments.launch) {
    if (const auto read = read_launch_file(path, launch); !read) {
      complain(read.error().message());
      return rules::exit_code(rules::Status::unreadable);
    }
  }
  // The sandbox would not let it be loaded. Without a solver the rules leave some questions open.
  std::shared_ptr<const prove::Solver> solver;
  if (!arguments.no_prove) solver = prove::Solver::open().value_or(nullptr);
  if (const auto code = begin_sandbox(arguments.sandbox, {})) return *code;
  const rules::EvidenceSet& evidence = rules::shipped_evidence();
  report::AnalysisOptions options;
  options.wanted = *wanted;
  options.rules.evidence = &evidence;
  options.rules.launch = &launch;
  options.rules.solver = solver.get();
  lsp::Server server(STDIN_FILENO, STDOUT_FILENO, options, arguments.seconds);
  const int code = server.run();
  if (!server.fault().empty()) complain(server.fault());
  // A rule that runs is not waited for: nothing of it is wanted any more.
  if (server.is_busy()) std::_Exit(code);
  return code;
}

}  // namespace

void add_lsp(CLI::App& app, Action& action) {
  Verb verb(app, "lsp", "serve editors: a language server for PTX on standard input and output");
  const auto arguments = std::make_shared<Arguments>();
  verb.flag("--falsify", arguments->selection.falsify, "run all rules; default: those of critical and high severity");
  verb.option("--select", arguments->selection.select, "run only these rules (ids or names, separated by commas)")
      .type_name("RULES")
      .repeated()
      .comma_separated();
  verb.option("--ignore", arguments->selection.ignore, "do not run these rules")
      .type_name("RULES")
      .repeated()
      .comma_separated();
  verb.option("--launch", arguments->launch, "a launch file: what the host promises of each entry's launches")
      .type_name("F")
      .repeated();
  verb.option("--seconds", arguments->seconds, "how long the rules may take for a text (10)")
      .type_name("S")
      .check(number(3600));
  verb.flag("--no-prove", arguments->no_prove, "ask no solver (Z3) about what the rules leave undecided");
  add_sandbox(verb, arguments->sandbox);
  verb.callback([arguments, &action] { action = [arguments] { return serve(*arguments); }; });
}

}  // namespace ptxkit::tools
