// Little-endian integers of a stream, at addresses of any alignment.
#pragma once

#include <cstdint>

namespace ptxkit::kernels {

inline uint32_t read_u16(const uint8_t* from) { return from[0] | uint32_t{from[1]} << 8; }
inline uint32_t read_u32(const uint8_t* from) { return read_u16(from) | read_u16(from + 2) << 16; }
inline void write_u16(uint8_t* to, uint32_t value) {
  to[0] = static_cast<uint8_t>(value);
  to[1] = static_cast<uint8_t>(value >> 8);
}
inline void write_u32(uint8_t* to, uint32_t value) {
  write_u16(to, value);
  write_u16(to + 2, value >> 16);
}

}  // namespace ptxkit::kernels
