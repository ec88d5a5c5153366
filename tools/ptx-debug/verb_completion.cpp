// `ptx-debug completion SHELL` and `ptx-debug man`: print the flag tree for shells and for man(1).
#include <algorithm>
#include <memory>
#include <ranges>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "analyzer/rules/score.hpp"
#include "support/suggest.hpp"
#include "tools/ptx-debug/flag_tree.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {
namespace {

int print_or_fail(const std::string& text) { return print(text) ? 0 : rules::exit_code(rules::Status::unreadable); }

int complete(const CLI::App& app, const std::string& shell) {
  const std::vector<std::string>& shells = completion_shells();
  if (std::ranges::find(shells, shell) == shells.end()) {
    return usage_error("completion", fmt::format("expected {}, found '{}'{}", fmt::join(shells, ", "), shell,
                                                 did_you_mean(shell, shells)));
  }
  return print_or_fail(completion_script(flag_tree(app), shell));
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  Verb verb(app, "completion", "print a script that completes verbs, options and values in a shell");
  const auto shell = std::make_shared<std::string>();
  verb.option("SHELL", *shell, "bash, fish or zsh")
      .required()
      .type_name(fmt::format("{}", fmt::join(completion_shells(), "|")));
  verb.callback([shell, &app, &action] { action = [shell, &app] { return complete(app, *shell); }; });
}

void add_man(CLI::App& app, Action& action) {
  Verb verb(app, "man", "print the manual page, for man(1)");
  verb.callback(
      [&app, &action] { action = [&app] { return print_or_fail(man_page(flag_tree(app), summary_of(app))); }; });
}

}  // namespace ptxkit::tools
