// A command of the user's, run by /bin/sh with a bound on its time.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "support/result.hpp"

namespace ptxkit::tools {

// `text` as one word of a shell command.
std::string shell_quoted(std::string_view text);

// Exit status of the command as a shell has it (128 + N after signal N); nothing where it ran longer than `limit`, when
// it and what it started are killed. Its input is empty, its output goes nowhere.
Result<std::optional<int>> run_shell(const std::string& command, std::chrono::milliseconds limit);

}  // namespace ptxkit::tools
