// Reads launch files as a whole: what the rules read, and the words of objects, which only a launch reads.
#pragma once

#include <string>
#include <string_view>

#include "analyzer/rules/engine/rule.hpp"
#include "support/result.hpp"

namespace ptxkit {

// Adds a file's entries to `into`; an entry of the same name is replaced. Errors name the file and the mistake.
Result<void> read_launch_file(const std::string& path, rules::LaunchSet& into);
// The same for the text of a launch file; `name` names it in errors.
Result<void> parse_launch_text(std::string_view json, const std::string& name, rules::LaunchSet& into);

}  // namespace ptxkit
