// The verbs and options of the program as data, for shell completion and the man page: taken from the parser itself, so
// that they cannot say something else than --help.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ptxkit::tools {

enum class ValueKind { none, words, rules, path, other };

struct Flag {
  std::vector<std::string> names;  // "-j", "--jobs"; of an operand its name, "FILE"
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
std::string summary_of(const CLI::App& app);  // what the program is, in a line

// Scripts that a shell reads. Precondition: `shell` is one of completion_shells().
const std::vector<std::string>& completion_shells();  // "bash", "fish", "zsh"
std::string completion_script(const std::vector<VerbFlags>& verbs, const std::string& shell);

// ptx-debug(1) in the language of man(7).
std::string man_page(const std::vector<VerbFlags>& verbs, const std::string& summary);

}  // namespace ptxkit::tools
