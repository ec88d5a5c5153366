// The verbs and options of the program as data, for shell completion and the man page. They are taken from the parser
// itself, so they always agree with --help.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ptxkit::tools {

enum class ValueKind { none, words, rules, path, other };

struct Flag {
  std::vector<std::string> names;  // "-j", "--jobs"; for an operand its name, "FILE"
  std::string value;               // "N", "text|json", as --help shows it
  ValueKind kind = ValueKind::none;
  std::vector<std::string> words;  // of `words` and `rules`
  std::string help;
};

struct VerbFlags {
  std::string name, help;
  std::vector<Flag> options, operands;
};

std::vector<VerbFlags> flag_tree(const CLI::App& app);
std::string summary_of(const CLI::App& app);  // one line on what the program is

// The completion script for a shell. Precondition: `shell` is one of completion_shells().
const std::vector<std::string>& completion_shells();  // "bash", "fish", "zsh"
std::string completion_script(const std::vector<VerbFlags>& verbs, const std::string& shell);

// The page ptx-debug(1), in the language of man(7).
std::string man_page(const std::vector<VerbFlags>& verbs, const std::string& summary);

}  // namespace ptxkit::tools
