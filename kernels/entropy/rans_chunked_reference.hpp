// What the kernels `rans_chunked_encode` and `rans_chunked_decode` compute, stated for one item.
#pragma once

#include <span>

#include "kernels/entropy/rans_format.hpp"

namespace ptxkit::kernels {

// Codes `src` into `dst`. output_overrun when `dst` is too small: rans_chunked_bound says what always suffices.
TransformOutcome rans_chunked_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst,
                                               const RansChunkedOptions& options);

// Decodes the stream `src`, by any encoder, into `dst`. Its structure is checked before a byte is written.
TransformOutcome rans_chunked_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

// Bytes that a stream of `raw_bytes` takes at most.
constexpr uint64_t rans_chunked_bound(uint64_t raw_bytes, const RansChunkedOptions& options) {
  const uint64_t chunks = (raw_bytes + options.chunk_bytes - 1) / options.chunk_bytes;
  return kRansLengthsAt + chunks * (2 + 1 + 8 * uint64_t{options.lanes}) + 2 * raw_bytes;
}

}  // namespace ptxkit::kernels
