// See tensor_map.hpp. CUDA Driver API, cuTensorMapEncodeTiled.
#include "runtime/backend/emulator/tensor_map.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace ptxkit::emulator {

namespace {

constexpr uint64_t kMark = 0x70616d726f736e65;  // "ensormap"

static_assert(sizeof(TensorMap) + sizeof kMark <= kTensorMapBytes);

}  // namespace

Result<std::array<std::byte, kTensorMapBytes>> encode(const TensorMap& map) {
  if (map.rank < 1 || map.rank > 5) return fail(fmt::format("rank {} of a tensor map is not within 1 to 5", map.rank));
  if (map.address == 0 || map.address % 16)
    return fail(fmt::format("address {:#x} of a tensor is no multiple of 16", map.address));
  using ptx::Type;
  static constexpr Type kElements[] = {Type::u8,  Type::u16, Type::u32, Type::s32, Type::u64,
                                       Type::s64, Type::f16, Type::f32, Type::f64, Type::bf16};
  if (std::find(std::begin(kElements), std::end(kElements), map.element) == std::end(kElements))
    return fail(fmt::format("a tensor cannot have elements of type {}", ptx::text(map.element)));
  for (unsigned i = 0; i < map.rank; ++i) {
    if (map.size[i] == 0 || map.size[i] > uint64_t{1} << 32)
      return fail(fmt::format("dimension {} of a tensor has {} elements, expected 1 to 2^32", i, map.size[i]));
    if (map.box[i] == 0 || map.box[i] > 256)
      return fail(fmt::format("dimension {} of a box has {} elements, expected 1 to 256", i, map.box[i]));
    if (i && (map.stride_bytes[i - 1] % 16 || map.stride_bytes[i - 1] >= uint64_t{1} << 40))
      return fail(
          fmt::format("stride {} of a tensor, {} bytes, is no multiple of 16 below 2^40", i, map.stride_bytes[i - 1]));
  }
  const unsigned row_bytes = map.box[0] * ptx::byte_width(map.element);
  if (row_bytes % 16) return fail(fmt::format("a row of a box has {} bytes, expected a multiple of 16", row_bytes));
  const unsigned span_bytes = 16u << static_cast<unsigned>(map.swizzle);
  if (map.swizzle != TensorSwizzle::none && row_bytes > span_bytes)
    return fail(fmt::format("a row of a box has {} bytes, more than the {} that are swizzled", row_bytes, span_bytes));
  std::array<std::byte, kTensorMapBytes> bytes{};
  std::memcpy(bytes.data(), &kMark, sizeof kMark);
  std::memcpy(bytes.data() + sizeof kMark, &map, sizeof map);
  return bytes;
}

Result<TensorMap> decode_tensor_map(std::span<const uint8_t, kTensorMapBytes> bytes) {
  uint64_t mark = 0;
  std::memcpy(&mark, bytes.data(), sizeof mark);
  if (mark != kMark) return fail("no tensor map is here", "", "make one with emulator::encode(TensorMap)");
  TensorMap map;
  std::memcpy(&map, bytes.data() + sizeof mark, sizeof map);
  return map;
}

}  // namespace ptxkit::emulator
