// Launch files as the command line names them.
#pragma once

#include <string>

#include "analyzer/rules/engine/rule.hpp"
#include "support/result.hpp"

namespace ptxkit::tools {

// Adds a file's entries to `into`. Errors name the file, and what in it is wrong: words of objects too, which the rules
// do not read and a launch would.
Result<void> read_launch_file(const std::string& path, rules::LaunchSet& into);

}  // namespace ptxkit::tools
