// Writes the same flag tree for three shells.
#include <algorithm>

#include <fmt/format.h>

#include "tools/ptx-debug/flag_tree.hpp"

namespace ptxkit::tools {
namespace {

// In single quotes, for any of the shells.
std::string quoted(std::string_view text, std::string_view quote_inside) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string(quote_inside) : std::string(1, c);
  return out + "'";
}

bool takes_files(const VerbFlags& verb) {
  return std::ranges::any_of(verb.operands, [](const Flag& flag) { return flag.kind == ValueKind::path; });
}

std::string names_of(const VerbFlags& verb) {
  std::string names;
  for (const Flag& flag : verb.options)
    names += fmt::format("{}{}", names.empty() ? "" : " ", fmt::join(flag.names, " "));
  return names;
}

std::string bash_values(const Flag& flag) {
  if (flag.kind == ValueKind::path) return "COMPREPLY=($(compgen -f -- \"$word\"))";
  if (flag.words.empty()) return ":";
  return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$word\"))", fmt::join(flag.words, " "));
}

std::string bash(const std::vector<VerbFlags>& verbs) {
  std::string verb_names, values, options, operands;
  for (const VerbFlags& verb : verbs) {
    verb_names += verb.name + " ";
    options += fmt::format("      {}) COMPREPLY=($(compgen -W '{}' -- \"$word\")) ;;\n", verb.name, names_of(verb));
    for (const Flag& flag : verb.options) {
      if (flag.kind == ValueKind::none || flag.value.starts_with("[")) continue;  // an optional value: --name=VALUE
      for (const std::string& name : flag.names) {
        values += fmt::format("    '{} {}') {}; return ;;\n", verb.name, name, bash_values(flag));
      }
    }
    for (const Flag& flag : verb.operands) {
      if (flag.kind == ValueKind::rules || flag.kind == ValueKind::words) {
        operands += fmt::format("    {}) {} ;;\n", verb.name, bash_values(flag));
      }
    }
  }
  return fmt::format(
      "# bash completion of ptx-debug, written by 'ptx-debug completion bash'\n"
      "_ptx_debug() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} verb=${{COMP_WORDS[1]}}\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W '{}--help --version' -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"$verb ${{COMP_WORDS[COMP_CWORD-1]}}\" in\n{}  esac\n"
      "  if [[ $word == -* ]]; then\n"
      "    case $verb in\n{}    esac\n"
      "    return\n"
      "  fi\n"
      "  case $verb in\n{}    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n  esac\n"
      "}}\n"
      "complete -o filenames -F _ptx_debug ptx-debug\n",
      verb_names, values, options, operands);
}

std::string zsh_value(const Flag& flag) {
  if (flag.kind == ValueKind::none) return "";
  const std::string name = flag.value.empty() || flag.kind == ValueKind::words ? "value" : flag.value;
  if (flag.kind == ValueKind::path) return fmt::format(":{}:_files", name);
  if (flag.words.empty()) return fmt::format(":{}: ", name);
  return fmt::format(":{}:({})", name, fmt::join(flag.words, " "));
}

// In _arguments, ':' ends a part, and brackets enclose the help.
std::string zsh_help(std::string_view help) {
  std::string out;
  for (const char c : help) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh(const std::vector<VerbFlags>& verbs) {
  constexpr std::string_view kQuote = "'\\''";
  std::string names, arms;
  for (const VerbFlags& verb : verbs) {
    names += "    " + quoted(fmt::format("{}:{}", verb.name, zsh_help(verb.help)), kQuote) + "\n";
    arms += fmt::format("    {})\n      _arguments", verb.name);
    for (const Flag& flag : verb.options) {
      for (const std::string& name : flag.names) {
        arms += " \\\n        " + quoted(fmt::format("{}[{}]{}", name, zsh_help(flag.help), zsh_value(flag)), kQuote);
      }
    }
    for (const Flag& flag : verb.operands) {
      arms += " \\\n        " + quoted("*" + zsh_value(flag), kQuote);
      break;  // '*' covers all operands
    }
    arms += "\n      ;;\n";
  }
  return fmt::format(
      "#compdef ptx-debug\n"
      "# zsh completion of ptx-debug, written by 'ptx-debug completion zsh'\n"
      "_ptx-debug() {{\n"
      "  local -a verbs\n"
      "  verbs=(\n{}  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe verb verbs\n"
      "    return\n"
      "  fi\n"
      "  local verb=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $verb in\n{}  esac\n"
      "}}\n"
      "if [ \"$funcstack[1]\" = _ptx-debug ]; then _ptx-debug \"$@\"; else compdef _ptx-debug ptx-debug; fi\n",
      names, arms);
}

std::string fish(const std::vector<VerbFlags>& verbs) {
  constexpr std::string_view kQuote = "\\'";
  std::string out = "# fish completion of ptx-debug, written by 'ptx-debug completion fish'\n";
  for (const VerbFlags& verb : verbs) {
    out += fmt::format("complete -c ptx-debug -f -n __fish_use_subcommand -a {} -d {}\n", verb.name,
                       quoted(verb.help, kQuote));
    const std::string of_verb = fmt::format("complete -c ptx-debug -n '__fish_seen_subcommand_from {}'", verb.name);
    for (const Flag& flag : verb.options) {
      out += of_verb;
      for (const std::string& name : flag.names) {
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (flag.kind == ValueKind::path) out += " -r -F";
      if (flag.kind == ValueKind::other) out += " -x";
      if (!flag.words.empty()) out += fmt::format(" -x -a '{}'", fmt::join(flag.words, " "));
      out += " -d " + quoted(flag.help, kQuote) + "\n";
    }
    for (const Flag& flag : verb.operands) {
      if (!flag.words.empty()) out += fmt::format("{} -f -a '{}'\n", of_verb, fmt::join(flag.words, " "));
    }
    if (!takes_files(verb)) out += of_verb + " -f\n";
  }
  return out;
}

}  // namespace

const std::vector<std::string>& completion_shells() {
  static const std::vector<std::string> kShells = {"bash", "fish", "zsh"};
  return kShells;
}

std::string completion_script(const std::vector<VerbFlags>& verbs, const std::string& shell) {
  if (shell == "bash") return bash(verbs);
  return shell == "zsh" ? zsh(verbs) : fish(verbs);
}

}  // namespace ptxkit::tools
