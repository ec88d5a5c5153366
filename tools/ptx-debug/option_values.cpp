// See option_values.hpp.
#include "tools/ptx-debug/option_values.hpp"

#include <charconv>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace ptxkit::tools {
namespace {

template <class Number>
ValueCheck within(Number most, std::string expected) {
  return [most, expected = std::move(expected)](const std::string& word) -> std::string {
    Number value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool is_number = error == std::errc{} && end == word.data() + word.size();
    if (is_number && value >= 0 && value <= most) return {};
    return fmt::format("expected {}, found '{}'", expected, word);
  };
}

}  // namespace

ValueCheck whole_number(uint64_t most) {
  const bool any = most == std::numeric_limits<uint64_t>::max();
  return within(most, any ? "a whole number from 0 on" : fmt::format("a whole number from 0 to {}", most));
}

ValueCheck number(double most) {
  const bool any = most == std::numeric_limits<double>::infinity();
  return within(most, any ? "a number from 0 on" : fmt::format("a number from 0 to {}", most));
}

ValueCheck file_name() {
  return [](const std::string& word) -> std::string { return word.empty() ? "expected a file, found ''" : ""; };
}

}  // namespace ptxkit::tools
