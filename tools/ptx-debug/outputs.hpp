// Checks the files that a verb writes before it begins. This prevents long work that cannot be saved, and an output
// that overwrites an input.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "support/result.hpp"

namespace ptxkit::tools {

struct Output {
  std::string_view option;
  std::string path;  // empty: none; "-": standard output
};

// Returns an error message where two outputs name one file, or an output names an input; nothing otherwise. A device
// may be named several times.
std::optional<std::string> fault(std::span<const Output> outputs, std::span<const std::string> inputs);

// Error: write_file cannot open one of them.
Result<void> check_all_writable(std::span<const Output> outputs);

}  // namespace ptxkit::tools
