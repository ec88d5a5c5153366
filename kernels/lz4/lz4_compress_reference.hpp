// What the kernels `lz4_compress_page` and `lz4_compress_chunk` compute, stated for one item and one thread.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/lz4/lz4_format.hpp"

namespace ptxkit::kernels {

struct CompressedItem {
  PageFlag flag;
  uint32_t size_bytes;  // what the kernel stores in dst_sizes
};

// Compresses `src` into `dst`, byte for byte as the kernel of `variant` does. Writes at most src.size() bytes.
// `refused` when src is larger than the variant takes, or than dst.
CompressedItem lz4_compress_reference(std::span<const uint8_t> src, std::span<uint8_t> dst,
                                      const Lz4CompressVariant& variant);

}  // namespace ptxkit::kernels
