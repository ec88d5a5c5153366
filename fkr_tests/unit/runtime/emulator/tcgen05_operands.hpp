// Elements and matrix descriptors for tests of tcgen05.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "support/half.hpp"

namespace ptxkit::emulator {

// The bits of a number from -3 to 3 in each type; without the container for 4 and 6 bits.
inline uint32_t bits_of(const std::string& type, int value) {
  const auto magnitude = static_cast<unsigned>(std::abs(value));
  const auto coded = [&](std::array<uint32_t, 4> codes, unsigned sign) {
    return codes[magnitude] | (value < 0 ? 1u << sign : 0u);
  };
  if (type == "f16") return std::bit_cast<uint16_t>(static_cast<Half>(value));
  if (type == "bf16") return std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16;
  if (type == "tf32") return std::bit_cast<uint32_t>(static_cast<float>(value));
  if (type == "e4m3") return coded({0, 0x38, 0x40, 0x44}, 7);
  if (type == "e5m2") return coded({0, 0x3c, 0x40, 0x42}, 7);
  if (type == "e2m3") return coded({0, 0x08, 0x10, 0x14}, 5);
  if (type == "e3m2") return coded({0, 0x0c, 0x10, 0x12}, 5);
  if (type == "e2m1") return coded({0, 2, 4, 5}, 3);
  return static_cast<uint8_t>(value);
}

// Puts the descriptor of a matrix at byte `begin` of the shared tile, whose address is in %r6, into a 64-bit register:
// without swizzle, distances in bytes. Overwrites %r7.
inline std::string shared_descriptor(const std::string& reg, unsigned begin, unsigned leading, unsigned stride) {
  return fmt::format(
      "  add.u32 %r7, %r6, {};\n  shr.u32 %r7, %r7, 4;\n  cvt.u64.u32 {}, %r7;\n  or.b64 {}, {}, {:#x};\n", begin, reg,
      reg, reg, uint64_t{leading / 16} << 16 | uint64_t{stride / 16} << 32 | uint64_t{1} << 46);
}

}  // namespace ptxkit::emulator
