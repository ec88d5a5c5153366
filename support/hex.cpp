#include "support/hex.hpp"

#include <charconv>

#include <fmt/format.h>

namespace ptxkit {

std::optional<std::vector<std::byte>> bytes_of_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 2);
  for (size_t at = 0; at < text.size(); at += 2) {
    unsigned char value = 0;
    const char* const end = text.data() + at + 2;
    if (const auto [stop, error] = std::from_chars(end - 2, end, value, 16); error != std::errc() || stop != end)
      return std::nullopt;
    bytes.push_back(std::byte{value});
  }
  return bytes;
}

std::string hex_of(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte each : bytes)
    fmt::format_to(std::back_inserter(text), "{:02x}", std::to_integer<unsigned>(each));
  return text;
}

}  // namespace ptxkit
