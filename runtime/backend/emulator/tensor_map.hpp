// Tensor maps: what `cp.async.bulk.tensor` looks at. On a GPU they are opaque and made by cuTensorMapEncodeTiled; here
// they have a form of our own, with the same conditions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "analyzer/ptx/names.hpp"
#include "support/result.hpp"

namespace ptxkit::emulator {

// How a box lies in shared memory: the 16-byte chunks of each 128 bytes change places, over spans of that many bytes.
enum class TensorSwizzle : uint8_t { none, bytes_32, bytes_64, bytes_128 };

// A tensor in global memory and the box of it that one copy moves; the innermost dimension comes first.
struct TensorMap {
  uint64_t address = 0;                    // a multiple of 16
  std::array<uint64_t, 5> size{};          // elements
  std::array<uint64_t, 4> stride_bytes{};  // of the dimensions 1 to 4, multiples of 16
  std::array<uint16_t, 5> box{};           // elements, at most 256 each
  uint8_t rank = 1;
  ptx::Type element = ptx::Type::u32;
  TensorSwizzle swizzle = TensorSwizzle::none;
};

inline constexpr size_t kTensorMapBytes = 128;  // aligned to 64

// Error: what cuTensorMapEncodeTiled would refuse.
Result<std::array<std::byte, kTensorMapBytes>> encode(const TensorMap& map);
Result<TensorMap> decode_tensor_map(std::span<const uint8_t, kTensorMapBytes> bytes);  // error: made by nobody

}  // namespace ptxkit::emulator
