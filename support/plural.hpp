// Counts with their noun.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace ptxkit {

// "1 finding", "2 findings"; with `several` = "copies": "2 copies".
inline std::string plural(size_t count, std::string_view noun, std::string_view several = {}) {
  if (count == 1 || several.empty()) return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
  return fmt::format("{} {}", count, several);
}

}  // namespace ptxkit
