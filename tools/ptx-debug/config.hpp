// The config file of analyze: its long options as `name = value`, for a project that wants the same ones every time.
//
//   # comment
//   falsify = true
//   min-score = 90
//   ignore = F052, BankConflicts
//   baseline = known.json        paths are relative to the config file's folder
//   json = true                  to standard output, as --json alone; json = F writes a file
//
// A name that may be given several times may stand in several lines. What the command line says, it says instead.
//
// A file that --config names may set every option. One that is found by a search may have come with a foreign checkout:
// it is taken only from the project of the working folder, and only where the user or root owns it and nobody else may
// write it; and it sets only options that name no program and no output, start nothing on a GPU, and read files of the
// project alone.
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

// What the search came to.
struct FoundConfig {
  std::string path;     // relative to the working folder; empty: there is none
  std::string refusal;  // why it is not taken; empty: it is
  std::string text;     // of one that is taken
  std::string project;  // the real path of the folder that it may read files of
};

// The nearest kConfigName from the working folder up to the top of the git repository that it is in; without a
// repository in the working folder alone. One that lies further above is found and not taken.
FoundConfig find_config();

// Sets the options of `verb` that the command line did not, from the file that --config names. Errors, with file and
// line: the file cannot be read, a line is no `name = value`, the name is no option of the verb (with the nearest that
// is), the value does not fit.
Result<void> apply_config(CLI::App& verb, const std::string& path);

// The same from a file that was found and is taken; what it may not set is left out, and returned: "line 3 (html)".
Result<std::vector<std::string>> apply_config(CLI::App& verb, const FoundConfig& found);

}  // namespace ptxkit::tools
