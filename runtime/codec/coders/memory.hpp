// Unaligned integers, uninitialised arrays, and reused workspaces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ptxkit::cpu {

// In the byte order of the machine, which must be little-endian, as the streams are.
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

// Memory for the arrays of one call. The destructor keeps it for a later call unless it is larger than kKeptBytes,
// because fetching new pages for every item costs as much as the coding itself. The number of kept blocks never exceeds
// the number that was in use at a time. Thread-safe.
class Workspace {
 public:
  explicit Workspace(size_t bytes) : Workspace() {
    if (room_.size() < bytes) {
      room_ = {};  // first, so that the old and the new memory do not exist at the same time
      room_ = Room(bytes);
    }
    next_ = room_.begin();
  }
  ~Workspace() {
    if (room_.size() > kKeptBytes) room_ = {};
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::move(room_));
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // The bytes of a workspace that an array takes.
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
  // Takes a kept block, or none.
  Workspace() {
    const std::lock_guard lock(mutex_);
    if (kept_.empty()) {
      kept_.reserve(++count_);  // so that nothing throws in ~Workspace()
    } else {
      room_ = std::move(kept_.back());
      kept_.pop_back();
    }
  }

  static constexpr size_t kAlignment = alignof(std::max_align_t), kKeptBytes = size_t{8} << 20;

  class Room {
   public:
    Room() = default;
    explicit Room(size_t bytes) : bytes_(uncleared<uint8_t>(bytes)), size_(bytes) {}
    uint8_t* begin() const { return bytes_.get(); }
    size_t size() const { return bytes_ ? size_ : 0; }

   private:
    std::unique_ptr<uint8_t[]> bytes_;
    size_t size_ = 0;
  };

  static inline std::mutex mutex_;
  static inline std::vector<Room> kept_;
  static inline size_t count_ = 0;
  Room room_;
  uint8_t* next_ = nullptr;
};

}  // namespace ptxkit::cpu
