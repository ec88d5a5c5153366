// Matrices of wgmma and tcgen05 in shared memory.
//
// A descriptor says where a matrix lies: its start, two distances and a swizzle. Shared memory is seen in atoms of 8
// rows, a row being 16 bytes, or as many as the swizzle covers (32, 64, 128), whose 16-byte chunks change places by the
// number of their line of 128 bytes. Which distance steps where is what an H200 reads (measured over all swizzles and
// both orders); the ISA's text leaves it to its figures.
#pragma once

#include <array>
#include <cstdint>

namespace ptxkit::emulator {

struct SharedMatrix {
  uint64_t start, leading_bytes, stride_bytes;
  unsigned row_bytes;  // 16 without swizzle

  explicit SharedMatrix(uint64_t bits)
      : start((bits & 0x3fff) << 4),
        leading_bytes((bits >> 16 & 0x3fff) << 4),
        stride_bytes((bits >> 32 & 0x3fff) << 4),
        row_bytes(std::array{16u, 128u, 64u, 32u}[bits >> 62]) {}

  // Offset in shared memory of the byte at `along` bytes of row `across`, rows being contiguous.
  uint64_t rows_along_k(unsigned across, unsigned along) const {
    const uint64_t group = across / 8 * stride_bytes + across % 8 * row_bytes;
    if (row_bytes == 16) return start + group + along / 16 * leading_bytes + along % 16;
    return swizzled(start + group + along);
  }
  // The same where M or N is contiguous: `along` bytes of it, of line k.
  uint64_t rows_across_k(unsigned k, unsigned along) const {
    if (row_bytes == 16) return start + along / 16 * stride_bytes + k / 8 * leading_bytes + k % 8 * 16 + along % 16;
    return swizzled(start + along / row_bytes * leading_bytes + k / 8 * stride_bytes + k % 8 * row_bytes +
                    along % row_bytes);
  }
  uint64_t swizzled(uint64_t address) const { return address ^ (address >> 3 & (row_bytes - 16)); }
};

}  // namespace ptxkit::emulator
