// See name_pattern.hpp.
#include "tools/ptx-debug/name_pattern.hpp"

#include <fmt/format.h>

namespace ptxkit::tools {

Result<NamePattern> NamePattern::parse(std::string_view option, const std::string& text) {
  // Without this flag libstdc++ recurses once per character, and overflows the stack on names of 20,000 characters.
  constexpr auto kWithoutRecursion = std::regex_constants::__polynomial;
  NamePattern pattern;
  try {
    pattern.regex_ = std::regex(text, std::regex::ECMAScript | kWithoutRecursion);
  } catch (const std::regex_error& error) {
    return fail(fmt::format("{}: '{}' is not a regular expression: {}", option, text, error.what()));
  }
  return pattern;
}

}  // namespace ptxkit::tools
