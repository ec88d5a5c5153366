// Little-endian integers, as all formats of this project have them.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/codec/format/byte_stream.hpp"

namespace ptxkit::format {

template <class T>
T load_little_endian(Bytes bytes) {
  T value = 0;
  for (unsigned byte = 0; byte < sizeof(T); ++byte) value |= static_cast<T>(static_cast<T>(bytes[byte]) << (8 * byte));
  return value;
}

template <class T>
void append_little_endian(T value, std::vector<uint8_t>& out) {
  for (unsigned byte = 0; byte < sizeof(T); ++byte) out.push_back(static_cast<uint8_t>(value >> (8 * byte)));
}

}  // namespace ptxkit::format
