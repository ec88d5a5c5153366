// A verb of ptx-debug: a subcommand that stores its work in an Action when the command line names it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace ptxkit::tools {

// Runs the chosen verb and returns the exit code of the program.
using Action = std::function<int()>;

// Each adds its subcommand to `app`; CLI11 sets `action` when the command line names it.
void add_analyze(CLI::App& app, Action& action);
void add_cfg(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_cost(CLI::App& app, Action& action);
void add_crash_analyze(CLI::App& app, Action& action);
void add_diff(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_gen_fkr(CLI::App& app, Action& action);
void add_info(CLI::App& app, Action& action);
void add_instrument(CLI::App& app, Action& action);
void add_lsp(CLI::App& app, Action& action);
void add_man(CLI::App& app, Action& action);
void add_new(CLI::App& app, Action& action);
void add_print(CLI::App& app, Action& action);
void add_probe(CLI::App& app, Action& action);
void add_reduce(CLI::App& app, Action& action);
void add_rules(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_stats(CLI::App& app, Action& action);
void add_trace(CLI::App& app, Action& action);

// Prints the mistake and where to read more on standard error; returns 64.
int usage_error(std::string_view verb, std::string_view what);

// Writes to standard output, with characters that are unsafe to show (support/printable.hpp) replaced by '?'. Reports a
// failure on standard error. Returns whether everything was written.
bool print(std::string_view text);
// The same without replacement: for PTX, and for documents that are already safe.
bool print_bytes(std::string_view text);

void complain(std::string_view what);                       // "ptx-debug: what", on standard error, as one line
void complain_of(const std::vector<std::string>& remarks);  // one line each

}  // namespace ptxkit::tools
