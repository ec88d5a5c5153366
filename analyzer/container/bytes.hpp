// Reads little-endian fields out of untrusted bytes. Every read is bounds-checked.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace ptxkit::container {

// The field of type T at `offset`; nothing where it is not within `bytes`.
template <class T>
std::optional<T> field(std::string_view bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// [offset, offset + size); nothing where it is not within `bytes`.
inline std::optional<std::string_view> range(std::string_view bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) return std::nullopt;
  return bytes.substr(offset, size);
}

}  // namespace ptxkit::container
