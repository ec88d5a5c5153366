// Integers at any address, room that nobody has to clear first, and room that a thread keeps.
#pragma once

#include <cstddef>
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

// Room for the arrays of a call. A thread keeps it for its next call, since to get pages anew for every item costs as
// much as what is done with them, unless it is larger than kKeptBytes. A thread has one at a time.
class Workspace {
 public:
  explicit Workspace(size_t bytes) {
    if (bytes > kKeptBytes) {
      own_ = uncleared<uint8_t>(bytes);
      next_ = own_.get();
      return;
    }
    if (bytes > kept_bytes_) {
      kept_bytes_ = 0;  // until there is room again
      kept_.reset();
      kept_ = uncleared<uint8_t>(bytes);
      kept_bytes_ = bytes;
    }
    next_ = kept_.get();
  }

  // What an array takes of a workspace.
  template <class T>
  static constexpr size_t bytes_of(size_t count) {
    return (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  }

  template <class T>
  T* array(size_t count) {
    auto* const begin = reinterpret_cast<T*>(next_);
    std::uninitialized_default_construct_n(begin, count);
    next_ += bytes_of<T>(count);
    return begin;
  }

 private:
  static constexpr size_t kAlignment = alignof(std::max_align_t), kKeptBytes = size_t{8} << 20;

  static inline thread_local std::unique_ptr<uint8_t[]> kept_;
  static inline thread_local size_t kept_bytes_ = 0;
  std::unique_ptr<uint8_t[]> own_;
  uint8_t* next_ = nullptr;
};

}  // namespace ptxkit::cpu
