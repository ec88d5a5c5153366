// What the kernels `rans_chunked_encode` and `rans_chunked_decode` compute, stated for one item.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/rans_format.hpp"

namespace ptxkit::kernels {

// Codes `src` into `dst`. output_overrun when `dst` is too small: rans_chunked_bound says what always suffices.
TransformOutcome rans_chunked_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst,
                                               const RansChunkedOptions& options);

// Decodes the stream `src`, by any encoder, into `dst`. Its structure is checked before a byte is written.
TransformOutcome rans_chunked_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

// The two halves of these functions, for other code that makes the same bytes. Of the encoder: writes what stands
// before the chunks' lengths. ok with where the chunks begin.
TransformOutcome begin_rans_chunked(std::span<const uint8_t> src, std::span<uint8_t> dst,
                                    const RansChunkedOptions& options, std::array<uint16_t, kSymbols>& frequencies);

// Of the decoder: a stream whose structure is in order, and whose content fits `room_bytes`.
struct RansChunk {
  uint32_t length, lanes;  // symbols
  const uint8_t* states;   // u32 of each lane, then its number of words, u32
  const uint8_t* words;    // of lane 0, lane 1, ...
};
struct RansChunkedStream {
  uint32_t raw_bytes = 0, scale_bits = 0;
  std::array<uint16_t, kSymbols> frequencies{};
  std::vector<RansChunk> chunks;
};
StreamStatus open_rans_chunked(std::span<const uint8_t> src, size_t room_bytes, RansChunkedStream& stream);

// Symbols of a lane in a chunk of `length`.
constexpr uint32_t symbols_of_lane(uint32_t length, uint32_t lane, uint32_t lanes) {
  return lane < length ? (length - lane - 1) / lanes + 1 : 0;
}

// Bytes that a stream of `raw_bytes` takes at most.
constexpr uint64_t rans_chunked_bound(uint64_t raw_bytes, const RansChunkedOptions& options) {
  const uint64_t chunks = (raw_bytes + options.chunk_bytes - 1) / options.chunk_bytes;
  return kRansLengthsAt + chunks * (2 + 1 + 8 * uint64_t{options.lanes}) + 2 * raw_bytes;
}

}  // namespace ptxkit::kernels
