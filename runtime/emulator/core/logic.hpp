// Bit functions shared by the handlers and the propagation of undefined bits.
#pragma once

#include <cstdint>

namespace ptxkit::emulator {

inline uint32_t lop3_value(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t out = 0;
  for (unsigned row = 0; row < 8; ++row) {
    uint32_t keep = table >> row & 1 ? 0xffffffffu : 0u;
    out |= keep & (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
  }
  return out;
}

// The selector of the general mode that equals a special mode of prmt. Mode: 0 general, 1 f4e, 2 b4e, 3 rc8, 4 ecl, 5
// ecr, 6 rc16.
inline uint32_t permute_selector(uint32_t c, int mode) {
  const uint32_t n = c & 3;
  switch (mode) {
    case 1:
      return (0x3210 + 0x1111 * n);
    case 2:
      return n | ((n - 1) & 7) << 4 | ((n - 2) & 7) << 8 | ((n - 3) & 7) << 12;
    case 3:
      return 0x1111 * n;
    case 4: {
      auto at_least = [&](uint32_t i) { return i > n ? i : n; };
      return at_least(0) | at_least(1) << 4 | at_least(2) << 8 | at_least(3) << 12;
    }
    case 5: {
      auto at_most = [&](uint32_t i) { return i < n ? i : n; };
      return at_most(0) | at_most(1) << 4 | at_most(2) << 8 | at_most(3) << 12;
    }
    case 6:
      return n & 1 ? 0x3232 : 0x1010;
    default:
      return c;
  }
}

inline uint32_t permute_value(uint32_t a, uint32_t b, uint32_t selector, bool signs) {
  const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  uint32_t out = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const uint32_t pick = selector >> 4 * i & 0xf;
    auto byte = static_cast<uint32_t>(bytes >> 8 * (pick & 7)) & 0xff;
    if (signs && (pick & 8)) byte = byte & 0x80 ? 0xff : 0;
    out |= byte << 8 * i;
  }
  return out;
}

}  // namespace ptxkit::emulator
