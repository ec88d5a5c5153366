// Integers at any address, and room that nobody has to clear first.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

namespace ptxkit::cpu {

// In the byte order of the machine, which has to be little-endian: streams are.
template <class T>
T load(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
void store(uint8_t* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

inline uint64_t load_big_endian(const uint8_t* from) { return __builtin_bswap64(load<uint64_t>(from)); }
inline void store_big_endian(uint8_t* to, uint64_t value) { store(to, __builtin_bswap64(value)); }

template <class T>
std::unique_ptr<T[]> uncleared(size_t count) {
  return std::make_unique_for_overwrite<T[]>(count);
}

}  // namespace ptxkit::cpu
