// Scalar reference of the kernel `lz4_decompress`, for one block.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/abi.hpp"

namespace ptxkit::kernels {

struct DecompressedItem {
  Lz4Status status;
  uint32_t size_bytes;  // the value that the kernel stores in dst_sizes: 0 unless ok
};

// Decodes the block `src` into `dst`. Whatever the input, it reads no byte outside `src` and `dst` and writes none
// outside `dst`.
DecompressedItem lz4_decompress_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

// The same without the limit of that kernel, for blocks below 2 GiB. `dst` begins with `history_bytes` bytes of output
// that matches may repeat.
DecompressedItem lz4_decode_block_reference(std::span<const uint8_t> src, std::span<uint8_t> dst,
                                            uint32_t history_bytes = 0);

}  // namespace ptxkit::kernels
