// See gpu_tensor_map.hpp. The numbers are those of cuda.h: CUtensorMapDataType, CUtensorMapSwizzle.
#include "runtime/launch/gpu_tensor_map.hpp"

#include <algorithm>
#include <iterator>
#include <ranges>

#include "analyzer/ptx/names.hpp"
#include "runtime/driver/driver.hpp"

namespace ptxkit {

using ptx::Type;

Result<std::vector<std::byte>> driver_tensor_map(const driver::Context& context, const emulator::TensorMap& map) {
  static constexpr Type kElements[] = {Type::u8,  Type::u16, Type::u32, Type::s32, Type::u64,
                                       Type::s64, Type::f16, Type::f32, Type::f64, Type::bf16};
  constexpr int kFlushedF32 = 10, kTf32 = 11, kFlushedTf32 = 12, kNarrow = 13;
  constexpr int kNoPromotion = 0, kChunksOf32Bytes = 4, kWithFlip = 5, kChunksOf64Bytes = 6;
  static constexpr Type kNarrowElements[] = {Type::b4x16, Type::b4x16_p64, Type::b6x16_p32};
  const auto* const found = std::ranges::find(kElements, map.element);
  const auto* const narrow = std::ranges::find(kNarrowElements, map.element);
  const auto element = narrow != std::end(kNarrowElements)
                           ? kNarrow + static_cast<int>(narrow - std::begin(kNarrowElements))
                       : map.element == Type::tf32 ? map.flushes ? kFlushedTf32 : kTf32
                       : map.flushes               ? kFlushedF32
                                                   : static_cast<int>(found - std::begin(kElements));
  const int swizzle = map.chunk_bytes == 64   ? kChunksOf64Bytes
                      : map.swaps_halves      ? kWithFlip
                      : map.chunk_bytes == 32 ? kChunksOf32Bytes
                                              : static_cast<int>(map.swizzle);
  const int interleave = map.interleave_bytes / 16;
  const std::vector<uint32_t> box(map.box.begin(), map.box.end()),
      element_stride(map.element_stride.begin(), map.element_stride.end());
  auto* const address = reinterpret_cast<void*>(map.address);
  const driver::Api& api = context.api();
  if (api.tensor_map_encode_tiled == nullptr || api.tensor_map_encode_im2col == nullptr)
    return fail("the driver makes no tensor maps", "", "install a driver for CUDA 12 or later");
  if (const auto current = context.make_current(); !current) return tl::unexpected(current.error());
  alignas(64) std::byte bytes[emulator::kTensorMapBytes];
  if (map.is_im2col) {
    const std::vector<int> lower(map.lower_corner.begin(), map.lower_corner.end()),
        upper(map.upper_corner.begin(), map.upper_corner.end());
    const int status = api.tensor_map_encode_im2col(
        bytes, element, map.rank, address, map.size.data(), map.stride_bytes.data(), lower.data(), upper.data(), box[0],
        box[1], element_stride.data(), interleave, swizzle, kNoPromotion, map.fills_with_nan ? 1 : 0);
    if (const auto done = context.check(status, "cuTensorMapEncodeIm2col"); !done) return tl::unexpected(done.error());
  } else {
    const int status = api.tensor_map_encode_tiled(bytes, element, map.rank, address, map.size.data(),
                                                   map.stride_bytes.data(), box.data(), element_stride.data(),
                                                   interleave, swizzle, kNoPromotion, map.fills_with_nan ? 1 : 0);
    if (const auto done = context.check(status, "cuTensorMapEncodeTiled"); !done) return tl::unexpected(done.error());
  }
  return std::vector<std::byte>(std::begin(bytes), std::end(bytes));
}

}  // namespace ptxkit
