#include "kernels/deflate/checksums_reference.hpp"

#include <algorithm>
#include <array>

#include "kernels/deflate/deflate_format.hpp"

namespace ptxkit::kernels {
namespace {

// What each byte makes of a CRC that is 0.
constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc % 2 != 0 ? kCrc32Polynomial : 0);
    table[byte] = crc;
  }
  return table;
}
constexpr auto kCrcTable = crc_table();

}  // namespace

uint32_t crc32_reference(std::span<const uint8_t> bytes) {
  uint32_t crc = ~0u;
  for (const uint8_t byte : bytes) crc = crc >> 8 ^ kCrcTable[(crc ^ byte) & 0xFF];
  return ~crc;
}

uint32_t adler32_reference(std::span<const uint8_t> bytes) {
  constexpr size_t kPart = 5552;  // the most bytes after which no sum has overflowed (RFC 1950's NMAX)
  uint32_t low = 1, high = 0;
  for (size_t at = 0; at < bytes.size(); at += kPart) {
    for (const uint8_t byte : bytes.subspan(at, std::min(kPart, bytes.size() - at))) {
      low += byte;
      high += low;
    }
    low %= kAdlerModulus;
    high %= kAdlerModulus;
  }
  return high << 16 | low;
}

}  // namespace ptxkit::kernels
