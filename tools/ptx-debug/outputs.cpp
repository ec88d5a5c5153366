// See outputs.hpp.
#include "tools/ptx-debug/outputs.hpp"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "support/file.hpp"

namespace ptxkit::tools {
namespace {

namespace fs = std::filesystem;

bool is_same_file(const std::string& a, const std::string& b) {
  if (a.empty() || a == "-" || b == "-") return false;
  std::error_code ignored;
  if (fs::exists(a, ignored) && !fs::is_regular_file(a, ignored)) return false;
  return fs::equivalent(a, b, ignored) ||
         fs::absolute(a, ignored).lexically_normal() == fs::absolute(b, ignored).lexically_normal();
}

}  // namespace

std::optional<std::string> fault(std::span<const Output> outputs, std::span<const std::string> inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [option, path] = outputs[i];
    for (const std::string& input : inputs) {
      if (is_same_file(path, input)) return fmt::format("{}: '{}' is an input and would be overwritten", option, path);
    }
    for (const auto& [other, other_path] : outputs.first(i)) {
      if (is_same_file(path, other_path)) return fmt::format("{} and {} both name '{}'", other, option, path);
    }
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
