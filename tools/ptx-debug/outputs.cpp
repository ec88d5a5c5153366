// See outputs.hpp.
#include "tools/ptx-debug/outputs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "support/file.hpp"
#include "support/place.hpp"

namespace ptxkit::tools {
namespace {

// What is written to neither replaces nor is a file: nothing.
std::optional<Target> written_file(const std::string& path) {
  auto target = path.empty() || path == "-" ? std::nullopt : target_of(path, STDOUT_FILENO);
  if (target && target->info && !S_ISREG(target->info->st_mode)) target.reset();
  return target;
}

}  // namespace

std::optional<std::string> fault(std::span<const Output> outputs, std::span<const std::string> inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [option, path] = outputs[i];
    const auto output = written_file(path);
    if (!output) continue;
    for (const std::string& input : inputs) {
      const auto read = target_of(input, STDIN_FILENO);
      if (read && is_same_file(*output, *read))
        return fmt::format("{}: '{}' is an input and would be overwritten", option, path);
    }
    for (const auto& [other, other_path] : outputs.first(i)) {
      const auto written = written_file(other_path);
      if (written && is_same_file(*output, *written))
        return fmt::format("{} and {} both name '{}'", other, option, path);
    }
    const auto standard = target_of("-", STDOUT_FILENO);
    if (!output->descriptor && standard && is_same_file(*output, *standard))
      return fmt::format("{}: '{}' is the file of standard output and would be overwritten", option, path);
  }
  return std::nullopt;
}

Result<void> check_all_writable(std::span<const Output> outputs) {
  for (const Output& output : outputs) {
    if (const auto can = check_writable(output.path); !can) return can;
  }
  return {};
}

}  // namespace ptxkit::tools
