#include "support/json.hpp"

#include <cstdint>
#include <mutex>

namespace ptxkit {
namespace {

constexpr size_t kReserveBytes = 256u << 10;

// Taken in order; empty again when all of it has been given back.
struct Reserve {
  std::mutex mutex;
  size_t used_bytes = 0, taken_count = 0;
  alignas(std::max_align_t) unsigned char bytes[kReserveBytes];
};
constinit Reserve reserve{};

}  // namespace

void* take_from_json_reserve(size_t size_bytes) noexcept {
  constexpr size_t kUnit = alignof(std::max_align_t);
  const std::lock_guard lock(reserve.mutex);
  if (size_bytes > kReserveBytes - reserve.used_bytes) return nullptr;
  void* const memory = reserve.bytes + reserve.used_bytes;
  reserve.used_bytes += (size_bytes + kUnit - 1) / kUnit * kUnit;
  ++reserve.taken_count;
  return memory;
}

bool give_back_to_json_reserve(void* memory) noexcept {
  const auto begin = reinterpret_cast<uintptr_t>(reserve.bytes), at = reinterpret_cast<uintptr_t>(memory);
  if (at < begin || at >= begin + kReserveBytes) return false;
  const std::lock_guard lock(reserve.mutex);
  if (--reserve.taken_count == 0) reserve.used_bytes = 0;
  return true;
}

}  // namespace ptxkit
