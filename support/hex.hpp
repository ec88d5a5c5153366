// Conversion between bytes and pairs of hexadecimal digits.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxkit {

// Nothing if `text` is not a sequence of pairs of digits.
std::optional<std::vector<std::byte>> bytes_of_hex(std::string_view text);
std::string hex_of(std::span<const std::byte> bytes);

}  // namespace ptxkit
