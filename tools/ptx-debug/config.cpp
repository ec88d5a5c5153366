// See config.hpp.
#include "tools/ptx-debug/config.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "support/file.hpp"
#include "support/suggest.hpp"

namespace ptxkit::tools {
namespace {

namespace fs = std::filesystem;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// "F051, F081" without the blanks behind commas, where the option takes a list.
std::string listed(const CLI::Option& option, const std::string& value) {
  if (option.get_delimiter() == '\0') return value;
  std::string out;
  for (const char c : value) {
    if (c != ' ' && c != '\t') out += c;
  }
  return out;
}

// An option whose file may be left out, as --json: standard output then.
bool may_lack_path(const CLI::Option& option) { return option.get_type_name() == "[F]"; }

// Names a file: the value is relative to the config file.
bool is_path(const CLI::Option& option) { return option.get_type_name() == "F" || may_lack_path(option); }

// What the command line would say; nothing where it would leave the option out.
std::optional<std::string> as_word(const CLI::Option& option, const std::string& value, const fs::path& folder) {
  if (may_lack_path(option) && value == "false") return std::nullopt;
  if (value == "-" || (may_lack_path(option) && value == "true")) return "-";
  // An absolute path stays what it is.
  return is_path(option) ? (folder / value).string() : listed(option, value);
}

}  // namespace

std::optional<std::string> find_config() {
  std::error_code ignored;
  fs::path relative;
  for (fs::path folder = fs::current_path(ignored); !folder.empty(); folder = folder.parent_path()) {
    const fs::path path = relative / kConfigName;
    if (fs::is_regular_file(path, ignored)) return path.string();
    if (folder == folder.parent_path()) break;
    relative /= "..";
  }
  return std::nullopt;
}

Result<void> apply_config(CLI::App& verb, const std::string& path) {
  const auto text = read_file(path);
  if (!text) return tl::unexpected(text.error());
  std::map<std::string, CLI::Option*> options;
  std::vector<std::string> names;
  for (CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (name == "help" || name == "config" || name == "no-config") continue;
      options.emplace(name, option);
      names.push_back(name);
    }
  }
  struct Setting {
    size_t line;  // the last one
    std::vector<std::string> values;
  };
  std::map<std::string, Setting> settings;
  const auto wrong = [&](size_t line, const std::string& what) {
    return fail(what, fmt::format("{}:{}", path, line), "an option of 'ptx-debug analyze --help' as 'name = value'");
  };
  size_t number = 0;
  for (std::string_view rest = *text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    const size_t equals = line.find('=');
    if (equals == line.npos) return wrong(number, fmt::format("expected 'name = value', found '{}'", line));
    const std::string name(trimmed(line.substr(0, equals)));
    if (!options.contains(name)) {
      return wrong(number, fmt::format("unknown option '{}'{}", name, did_you_mean(name, names)));
    }
    const std::string_view value = trimmed(line.substr(equals + 1));
    if (value.empty()) return wrong(number, fmt::format("{}: expected a value, found none", name));
    Setting& setting = settings[name];
    setting.line = number;
    setting.values.emplace_back(value);
  }
  for (const auto& [name, setting] : settings) {
    CLI::Option& option = *options[name];
    if (option.count() > 0) continue;
    if (setting.values.size() > 1 && option.get_multi_option_policy() != CLI::MultiOptionPolicy::TakeAll) {
      return wrong(setting.line, fmt::format("{}: expected once, found {} times", name, setting.values.size()));
    }
    const bool is_flag = option.get_items_expected_max() == 0;
    try {
      for (const std::string& value : setting.values) {
        if (const auto word = as_word(option, value, fs::path(path).parent_path())) option.add_result(*word);
      }
      if (option.count() > 0) option.run_callback();
    } catch (const CLI::ParseError& error) {
      if (is_flag) {
        return wrong(setting.line, fmt::format("{}: expected true or false, found '{}'", name, setting.values.back()));
      }
      std::string_view what = error.what();
      const std::string prefix = fmt::format("--{}: ", name);
      if (what.starts_with(prefix)) what.remove_prefix(prefix.size());
      return wrong(setting.line, fmt::format("{}: {}", name, what));
    }
  }
  return {};
}

}  // namespace ptxkit::tools
