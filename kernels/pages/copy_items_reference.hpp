// Scalar reference of the kernel `copy_items`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace ptxkit::kernels {

// Copies the sizes[i] bytes at offsets[i] of `src` to offsets[i] of `dst`, for each i. Other bytes of `dst` stay.
inline void copy_items_reference(std::span<const uint8_t> src, std::span<const uint64_t> offsets,
                                 std::span<const uint32_t> sizes, std::span<uint8_t> dst) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 0) std::memcpy(dst.data() + offsets[i], src.data() + offsets[i], sizes[i]);
  }
}

}  // namespace ptxkit::kernels
