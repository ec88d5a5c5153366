// Runs a user's command with /bin/sh and a time limit.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "support/result.hpp"

namespace ptxkit::tools {

// `text` as one word of a shell command.
std::string shell_quoted(std::string_view text);

// Returns the exit status as a shell reports it (128 + N after signal N). Returns nothing where the command ran longer
// than `limit` or a stop was requested; its process group is then killed. Input and output are /dev/null.
Result<std::optional<int>> run_shell(const std::string& command, std::chrono::milliseconds limit);

}  // namespace ptxkit::tools
