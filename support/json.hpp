// JSON values of nlohmann-json whose destructors need no memory. nlohmann-json 3.11 moves the children of a value into
// a std::vector before it destroys them, in a destructor, where an exception ends the process. The vectors of these
// types take from a reserve where the system has nothing left.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

namespace ptxkit {

// 256 KiB for all threads: destroys values that have 8,000 children pending. take: null if the reserve has too little
// left. give_back: false if `memory` is not of the reserve.
void* take_from_json_reserve(size_t size_bytes) noexcept;
bool give_back_to_json_reserve(void* memory) noexcept;

// Allocates what the values themselves hold; it is no std::allocator, so that the vector of a destructor is told apart.
template <class T>
struct JsonAllocator {
  using value_type = T;
  JsonAllocator() = default;
  template <class U>
  JsonAllocator(const JsonAllocator<U>&) noexcept {}
  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T))); }
  void deallocate(T* memory, size_t) noexcept { ::operator delete(memory); }
  template <class U>
  bool operator==(const JsonAllocator<U>&) const noexcept {
    return true;
  }
};

// Members sorted by name, and in the order of insertion.
using Json = nlohmann::basic_json<std::map, std::vector, std::string, bool, int64_t, uint64_t, double, JsonAllocator>;
using OrderedJson = nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool, int64_t, uint64_t,
                                         double, JsonAllocator>;

namespace detail {

template <class Value>
struct JsonStackAllocator {
  using value_type = Value;
  using size_type = size_t;
  using difference_type = ptrdiff_t;
  using propagate_on_container_move_assignment = std::true_type;
  JsonStackAllocator() = default;

  Value* allocate(size_t count) {
    try {
      return static_cast<Value*>(::operator new(count * sizeof(Value)));
    } catch (const std::bad_alloc&) {
      void* const reserved = take_from_json_reserve(count * sizeof(Value));
      if (reserved == nullptr) throw;
      return static_cast<Value*>(reserved);
    }
  }
  void deallocate(Value* memory, size_t) noexcept {
    if (!give_back_to_json_reserve(memory)) ::operator delete(memory);
  }
};

}  // namespace detail
}  // namespace ptxkit

// The vector in a destructor of nlohmann-json has the standard allocator.
template <>
class std::allocator<ptxkit::Json> : public ptxkit::detail::JsonStackAllocator<ptxkit::Json> {
 public:
  allocator() = default;
  template <class U>
  allocator(const std::allocator<U>&) noexcept {}
  bool operator==(const allocator&) const noexcept { return true; }
};
template <>
class std::allocator<ptxkit::OrderedJson> : public ptxkit::detail::JsonStackAllocator<ptxkit::OrderedJson> {
 public:
  allocator() = default;
  template <class U>
  allocator(const std::allocator<U>&) noexcept {}
  bool operator==(const allocator&) const noexcept { return true; }
};
