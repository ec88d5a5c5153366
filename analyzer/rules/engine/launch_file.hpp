// Reads launch files: JSON with the host's promises about the launches of each entry. The DSL writes one for each of
// its kernels (docs/dsl.md); docs/analyzer.md lists the fields.
#pragma once

#include "analyzer/rules/engine/rule.hpp"
#include "support/result.hpp"

namespace ptxkit::rules {

// Adds the entries of the file to `into`. Errors name `path`, the field, the expected and the actual value.
Result<void> parse_launch_file(std::string_view json, const std::string& path, LaunchSet& into);
Result<void> load_launch_file(const std::string& path, LaunchSet& into);

}  // namespace ptxkit::rules
