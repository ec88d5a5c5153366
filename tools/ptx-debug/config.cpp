// See config.hpp.
#include "tools/ptx-debug/config.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/file.hpp"
#include "support/regular_file.hpp"
#include "support/suggest.hpp"

namespace ptxkit::tools {
namespace {

namespace fs = std::filesystem;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// A list such as "F051, F081" without the blanks after commas; other values are unchanged.
std::string listed(const CLI::Option& option, const std::string& value) {
  if (option.get_delimiter() == '\0') return value;
  std::string out;
  for (const char c : value) {
    if (c != ' ' && c != '\t') out += c;
  }
  return out;
}

// An option whose value may be omitted, such as --json; its output then goes to standard output.
bool may_lack_path(const CLI::Option& option) { return option.get_type_name() == "[F]"; }

// Whether the value names a file, which is relative to the config file.
bool is_path(const CLI::Option& option) {
  return option.get_type_name() == "F" || option.get_type_name() == "DIR" || may_lack_path(option);
}

// The word that the command line would hold; nothing where it would omit the option.
std::optional<std::string> as_word(const CLI::Option& option, const std::string& value, const fs::path& folder) {
  if (may_lack_path(option) && value == "false") return std::nullopt;
  if (value == "-" || (may_lack_path(option) && value == "true")) return "-";
  // An absolute path stays what it is.
  return is_path(option) ? (folder / value).string() : listed(option, value);
}

// Options that a found config file may set freely. Those of kFoundReads may name only files of the project, and --json
// only standard output. All other options name a program or an output, or start something on a GPU.
constexpr std::string_view kFoundSets[] = {"assume-align", "check",   "color",  "fail-on", "falsify",
                                           "format",       "ignore",  "jobs",   "kernel",  "min-score",
                                           "profile",      "release", "replay", "select",  "verbose"};
constexpr std::string_view kFoundReads[] = {"baseline", "evidence", "launch", "source-root"};

constexpr uint64_t kLargestConfigBytes = 1 << 20;

// Whether a found config file may contain `name = value`.
bool may_set(const std::string& name, const std::string& value, const fs::path& folder, const std::string& project) {
  if (std::ranges::count(kFoundSets, name)) return true;
  if (name == "json") return value == "true" || value == "false" || value == "-";
  if (!std::ranges::count(kFoundReads, name)) return false;
  std::error_code error;
  const fs::path path = fs::weakly_canonical(fs::absolute(folder / value, error), error);
  if (error || !is_below(path.string(), project)) return false;
  // The reader of a missing file reports it.
  return !fs::exists(path, error) || fs::is_regular_file(path, error) || fs::is_directory(path, error);
}

// Why the owner or the mode of a found config file rules it out; empty where neither does.
std::string untrusted_reason(const RegularFile& file) {
  const uint32_t user = ::geteuid();
  if (file.owner != user && file.owner != 0)
    return fmt::format("it belongs to user {}, and neither to you (user {}) nor to root", file.owner, user);
  // By convention a user's private group has the number of the user.
  if ((file.mode & S_IWGRP) != 0 && file.group != user) return fmt::format("its group {} may write it", file.group);
  if ((file.mode & S_IWOTH) != 0) return "every user may write it";
  return "";
}

FoundConfig read_found_config(const fs::path& path, const std::string& project) {
  FoundConfig found{path.string(), "", "", project};
  const std::string roots[] = {project};
  auto file = read_regular_file(path.string(), kLargestConfigBytes, roots);
  const bool cannot = !file && file.error().what.starts_with("cannot ");
  found.refusal = file ? untrusted_reason(*file) : (cannot ? "" : "it ") + file.error().what;
  if (found.refusal.empty()) found.text = std::move(file->content);
  return found;
}

// The values of one option, and where they stand.
struct Setting {
  size_t line;  // of the last value
  std::vector<std::string> values;
};

// `project` is set for a found file and null for one that --config names. Returns the settings that were skipped.
Result<std::vector<std::string>> apply_text(CLI::App& verb, const std::string& path, std::string_view text,
                                            const std::string* project) {
  std::map<std::string, CLI::Option*> options;
  std::vector<std::string> names;
  for (CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (name == "help" || name == "config" || name == "no-config") continue;
      options.emplace(name, option);
      names.push_back(name);
    }
  }
  std::vector<std::string> left_out;
  std::map<std::string, Setting> settings;
  const auto wrong = [&](size_t line, const std::string& what) {
    return fail(what, fmt::format("{}:{}", path, line), "an option of 'ptx-debug analyze --help' as 'name = value'");
  };
  size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
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
    if (project && !may_set(name, std::string(value), fs::path(path).parent_path(), *project)) {
      left_out.push_back(fmt::format("line {} ({})", number, name));
      continue;
    }
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
  return left_out;
}

}  // namespace

FoundConfig find_config() {
  std::error_code ignored;
  const fs::path start = fs::current_path(ignored);
  if (start.empty()) return {};
  // The project is the git repository around the working folder, or else the working folder itself.
  fs::path project = start;
  for (fs::path folder = start;; folder = folder.parent_path()) {
    if (fs::exists(fs::symlink_status(folder / ".git", ignored))) {
      project = folder;
      break;
    }
    if (folder == folder.parent_path()) break;
  }
  fs::path relative;
  bool is_inside = true;
  for (fs::path folder = start;; folder = folder.parent_path()) {
    const fs::path path = relative / kConfigName;
    if (fs::exists(fs::symlink_status(path, ignored))) {
      if (is_inside) return read_found_config(path, project.string());
      return {path.string(), fmt::format("it lies above the project {}", project.string()), "", ""};
    }
    if (folder == project) is_inside = false;
    if (folder == folder.parent_path()) return {};
    relative /= "..";
  }
}

Result<void> apply_config(CLI::App& verb, const std::string& path) {
  const auto text = read_file(path, kLargestConfigBytes);
  if (!text) return tl::unexpected(text.error());
  const auto applied = apply_text(verb, path, *text, nullptr);
  if (!applied) return tl::unexpected(applied.error());
  return {};
}

Result<std::vector<std::string>> apply_config(CLI::App& verb, const FoundConfig& found) {
  return apply_text(verb, found.path, found.text, &found.project);
}

}  // namespace ptxkit::tools
