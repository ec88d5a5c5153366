// Matrices of wgmma and tcgen05 in shared memory.
//
// A descriptor gives the place of a matrix: its start, two distances and a swizzle. Shared memory is divided into atoms
// of 8 rows. A row has 16 bytes, or as many as the swizzle covers (32, 64, 128); the index of its 128-byte line
// permutes its 16-byte chunks. The direction in which each distance steps is the one that an H200 uses (measured over
// all swizzles and both orders); the ISA's text leaves it to figures. The same holds for the base offset, which is the
// line to count from.
//
// Only tcgen05 has chunks of 32 bytes in atoms of 4 rows (PTX ISA 9.0, 9.7.16.10.6; CUTLASS, make_umma_desc:
// Swizzle<2,5,2> o ((T,8,m),(4,k))), and a second address instead of a distance, at which rows of 48 bytes continue
// after the 128-byte line in which they begin (9.7.16.3.1.2).
#pragma once

#include <array>
#include <cstdint>

namespace ptxkit::emulator {

struct SharedMatrix {
  uint64_t start, leading_bytes, stride_bytes;
  unsigned row_bytes;     // 16 without swizzle
  unsigned base;          // index, 0 to 7, of the 128-byte line from which lines are counted
  bool in_wide_chunks;    // of 32 bytes
  bool has_second_start;  // `leading_bytes` is that address

  explicit SharedMatrix(uint64_t bits)
      : start((bits & 0x3fff) << 4),
        leading_bytes((bits >> 16 & 0x3fff) << 4),
        stride_bytes((bits >> 32 & 0x3fff) << 4),
        row_bytes(std::array{16u, 128u, 64u, 32u}[bits >> 62]),
        base(bits >> 49 & 7),
        in_wide_chunks(bits >> 61 == 1),
        has_second_start(bits >> 52 & 1) {
    if (in_wide_chunks) row_bytes = 128;
  }

  // Offset in shared memory of byte `along` of row `across`, if the rows are contiguous along K.
  uint64_t rows_along_k(unsigned across, unsigned along) const {
    const uint64_t group = across / 8 * stride_bytes + across % 8 * row_bytes;
    if (row_bytes == 16) return start + group + along / 16 * leading_bytes + along % 16;
    const uint64_t in_line = start % 128 + along;
    if (has_second_start && in_line >= 128) return swizzled(leading_bytes + group + in_line - 128);
    return swizzled(start + group + along);
  }
  // The same if M or N is contiguous: byte `along` of line k.
  uint64_t rows_across_k(unsigned k, unsigned along) const {
    if (row_bytes == 16) return start + along / 16 * stride_bytes + k / 8 * leading_bytes + k % 8 * 16 + along % 16;
    const unsigned lines = in_wide_chunks ? 4 : 8;
    return swizzled(start + along / row_bytes * leading_bytes + k / lines * stride_bytes + k % lines * row_bytes +
                    along % row_bytes);
  }
  uint64_t swizzled(uint64_t address) const {
    const uint64_t line = (address >> 7) - base;
    return address ^ (in_wide_chunks ? (line & 3) << 5 : line << 4 & (row_bytes - 16));
  }
};

}  // namespace ptxkit::emulator
