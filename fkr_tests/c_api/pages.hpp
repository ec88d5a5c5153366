// A thousand pages, compressed and decompressed eight times on one thread: by the C ABI and by the C++ classes below
// it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

inline constexpr size_t kPages = 1000, kPageBytes = 4096;
inline constexpr int kRounds = 8;

inline std::vector<std::array<uint8_t, kPageBytes>> pages() {
  std::vector<std::array<uint8_t, kPageBytes>> all(kPages);
  uint32_t state = 1;
  for (auto& page : all) {
    for (size_t i = 0; i < kPageBytes; ++i) {
      if (i % 9 == 0) state = state * 1664525 + 1013904223;
      page[i] = static_cast<uint8_t>(state >> 28 | i % 5 << 4);
    }
  }
  return all;
}
