// See name_pattern.hpp.
#include "tools/ptx-debug/name_pattern.hpp"

#include <fmt/format.h>

namespace ptxkit::tools {

Result<NamePattern> NamePattern::parse(std::string_view option, const std::string& text) {
  // Without this flag libstdc++ recurses once per character, and overflows the stack on names of 20,000 characters.
  constexpr auto kSyntax = std::regex::ECMAScript | std::regex_constants::__polynomial;
  // It recurses to compile an expression, too. One may come from a file that a foreign project has.
  constexpr size_t kMostBytes = 4000;
  if (text.size() > kMostBytes) {
    return fail(fmt::format("{}: expected a regular expression of at most {} bytes, found {}", option, kMostBytes,
                            text.size()));
  }
  NamePattern pattern;
  try {
    pattern.regex_ = std::regex(text, kSyntax);  // first by itself: "a)(b" is none
    // With what comes before in the expression, each character is looked at once, not once for each place to begin at.
    pattern.regex_ = std::regex(fmt::format("[\\s\\S]*(?:{})", text), kSyntax);
  } catch (const std::regex_error& error) {
    return fail(fmt::format("{}: '{}' is not a regular expression: {}", option, text, error.what()));
  }
  return pattern;
}

}  // namespace ptxkit::tools
