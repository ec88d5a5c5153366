// Launch files: what the host promises of the launches of each entry, as JSON. The DSL writes one for each of its
// kernels (docs/dsl.md); docs/analyzer.md says which fields are read.
#pragma once

#include "analyzer/rules/engine/rule.hpp"
#include "support/result.hpp"

namespace ptxkit::rules {

// Adds the entries of a file's text to `into`. Errors name `path`, the field, what was expected and what was found.
Result<void> parse_launch_file(std::string_view json, const std::string& path, LaunchSet& into);
Result<void> load_launch_file(const std::string& path, LaunchSet& into);

}  // namespace ptxkit::rules
