// What the kernel `lz4_decompress` computes, stated for one block and one thread.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/abi.hpp"

namespace ptxkit::kernels {

struct DecompressedItem {
  Lz4Status status;
  uint32_t size_bytes;  // what the kernel stores in dst_sizes: 0 unless ok
};

// Decodes the block `src` into `dst`. Reads nothing outside `src`, reads and writes nothing outside `dst`, whatever
// the bytes are.
DecompressedItem lz4_decompress_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

}  // namespace ptxkit::kernels
