// Scalar reference of the kernel `copy_items`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ptxkit::kernels {

// Copies the sizes[i] bytes at offsets[i] of `src` to offsets[i] of `dst`, for each i. Other bytes of `dst` stay.
inline void copy_items_reference(const uint8_t* src, std::span<const uint64_t> offsets, std::span<const uint32_t> sizes,
                                 uint8_t* dst) {
  for (size_t i = 0; i < sizes.size(); ++i) std::copy_n(src + offsets[i], sizes[i], dst + offsets[i]);
}

}  // namespace ptxkit::kernels
