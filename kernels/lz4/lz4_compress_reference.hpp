// Scalar reference of the kernels `lz4_compress_page`, `lz4_compress_chunk` and `lz4_compress_high`, for one item.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/lz4/lz4_format.hpp"

namespace ptxkit::kernels {

struct CompressedItem {
  PageFlag flag;
  uint32_t size_bytes;  // the value that the kernel stores in dst_sizes
};

// Compresses `src` into `dst`, byte for byte as the kernel of `variant` does. Writes at most src.size() bytes. The flag
// is `refused` if `src` is larger than the variant accepts, or than `dst`.
CompressedItem lz4_compress_reference(std::span<const uint8_t> src, std::span<uint8_t> dst,
                                      const Lz4CompressVariant& variant);

// A match and the literals before it.
struct Lz4Sequence {
  uint32_t literal_count, match_length, offset;

  bool operator==(const Lz4Sequence&) const = default;
};

// The sequences of which `variant`, kChunkVariant or kHighVariant, makes the block of `src`, at most kMaxChunkBytes.
// Literals behind the last match are in no sequence. It parses zeros and incompressible bytes like others. Candidates
// farther back than `max_offset` are none, as in the parses for formats with a smaller window.
std::vector<Lz4Sequence> lz4_parse_reference(std::span<const uint8_t> src, const Lz4CompressVariant& variant,
                                             uint32_t max_offset = kMaxOffset);

}  // namespace ptxkit::kernels
