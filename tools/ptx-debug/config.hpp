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
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "support/result.hpp"

namespace CLI {
class App;
}

namespace ptxkit::tools {

inline constexpr std::string_view kConfigName = "ptx-debug.conf";

// The nearest kConfigName in the working folder or above it; nothing where there is none.
std::optional<std::string> find_config();

// Sets the options of `verb` that the command line did not. Errors, with file and line: the file cannot be read, a line
// is no `name = value`, the name is no option of the verb (with the nearest that is), the value does not fit.
Result<void> apply_config(CLI::App& verb, const std::string& path);

}  // namespace ptxkit::tools
