#include "support/byte_size.hpp"

#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>

namespace ptxkit {

std::string byte_size_to_digits(std::string& word) {
  uint64_t count = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
  std::string unit;
  for (const char* at = end; at != word.data() + word.size(); ++at)
    unit += *at >= 'a' && *at <= 'z' ? static_cast<char>(*at - 'a' + 'A') : *at;
  for (const char* suffix : {"IB", "B"}) {
    if (unit.size() > 1 && unit.substr(1) == suffix) unit.resize(1);
  }
  constexpr std::string_view kUnits = "BKMGT";
  const size_t power = unit.empty() ? 0 : kUnits.find(unit);
  const bool is_size =
      error == std::errc{} && power != kUnits.npos && count <= std::numeric_limits<uint64_t>::max() >> 10 * power;
  if (!is_size) return "expected a size such as 64M, found '" + word + "'";
  word = std::to_string(count << 10 * power);
  return {};
}

}  // namespace ptxkit
