// The config file of analyze: the verb's long options as `name = value`, for a project that wants the same ones each
// time.
//
//   # comment
//   falsify = true
//   min-score = 90
//   ignore = F052, BankConflicts
//   baseline = known.json        paths are relative to the config file's folder
//   json = true                  to standard output, as --json alone; json = F writes a file
//
// A repeatable option may stand in several lines. The command line overrides the file.
//
// A file named by --config may set every option. A file found by the search may come from an untrusted checkout. It
// is used only if it lies in the project of the working folder, is owned by the user or root, and is writable by no
// other user. It may set only options that name no program and no output, start nothing on a GPU, and read only files
// of the project.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/result.hpp"

namespace CLI {
class App;
}

namespace ptxkit::tools {

inline constexpr std::string_view kConfigName = "ptx-debug.conf";

// The result of find_config().
struct FoundConfig {
  std::string path;     // relative to the working folder; empty: no file was found
  std::string refusal;  // why the file is not used; empty: it is used
  std::string text;     // its content, if it is used
  std::string project;  // real path of the folder whose files it may name
};

// Finds the nearest kConfigName from the working folder up to the root of its git repository; outside a repository it
// looks in the working folder alone. A file further up is returned with a refusal.
FoundConfig find_config();

// Sets the options of `verb` that the command line did not set, from the file that --config names. Errors, with file
// and line: the file cannot be read, a line is not `name = value`, the verb has no such option (with the nearest name),
// the value does not fit.
Result<void> apply_config(CLI::App& verb, const std::string& path);

// The same from a found file that is used. Returns the settings that it may not make, which are skipped: "line 3
// (html)".
Result<std::vector<std::string>> apply_config(CLI::App& verb, const FoundConfig& found);

}  // namespace ptxkit::tools
