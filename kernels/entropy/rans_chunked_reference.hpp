// Scalar references of the kernels `rans_chunked_encode` and `rans_chunked_decode`, for one item.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/rans_format.hpp"

namespace ptxkit::kernels {

// Codes `src` into `dst`. output_overrun if `dst` is too small; rans_chunked_bound always suffices.
TransformOutcome rans_chunked_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst,
                                               const RansChunkedOptions& options);

// Decodes the stream `src`, from any encoder, into `dst`. The structure is checked before any byte is written.
TransformOutcome rans_chunked_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

// The two halves of these functions, for other code that produces the same bytes. The encoder's first half writes
// everything before the chunks' lengths. Its outcome is ok with the offset of the chunks.
TransformOutcome begin_rans_chunked(std::span<const uint8_t> src, std::span<uint8_t> dst,
                                    const RansChunkedOptions& options, std::array<uint16_t, kSymbols>& frequencies);

// The decoder's first half: a stream whose structure is valid and whose content fits `room_bytes`.
struct RansChunk {
  uint32_t length, lanes;  // length in symbols
  const uint8_t* states;   // u32 for each lane, then the number of words of each lane, u32
  const uint8_t* words;    // of lane 0, then lane 1, ...
};
struct RansChunkedStream {
  uint32_t raw_bytes = 0, scale_bits = 0;
  std::array<uint16_t, kSymbols> frequencies{};
  std::vector<RansChunk> chunks;
};
StreamStatus open_rans_chunked(std::span<const uint8_t> src, size_t room_bytes, RansChunkedStream& stream);

// The number of symbols of a lane in a chunk of `length` symbols.
constexpr uint32_t symbols_of_lane(uint32_t length, uint32_t lane, uint32_t lanes) {
  return lane < length ? (length - lane - 1) / lanes + 1 : 0;
}

// The largest size in bytes of a stream of `raw_bytes`.
constexpr uint64_t rans_chunked_bound(uint64_t raw_bytes, const RansChunkedOptions& options) {
  const uint64_t chunks = (raw_bytes + options.chunk_bytes - 1) / options.chunk_bytes;
  return kRansLengthsAt + chunks * (2 + 1 + 8 * uint64_t{options.lanes}) + 2 * raw_bytes;
}

}  // namespace ptxkit::kernels
