// Reads the launch files that the command line names.
#pragma once

#include <string>

#include "analyzer/rules/engine/rule.hpp"
#include "support/result.hpp"

namespace ptxkit::tools {

// Adds a file's entries to `into`; an entry of the same name is replaced. Errors name the file and the mistake. The
// words of objects are checked too: the rules do not read them, a launch does.
Result<void> read_launch_file(const std::string& path, rules::LaunchSet& into);

}  // namespace ptxkit::tools
