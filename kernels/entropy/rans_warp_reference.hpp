// What the kernels `rans_warp_encode` and `rans_warp_decode` compute, stated for one item.
#pragma once

#include <array>
#include <span>

#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/rans_format.hpp"

namespace ptxkit::kernels {

inline constexpr size_t kRansWarpStatesBytes = 4 * kRansWarpLanes;  // at the front of a chunk

// Codes `src` into `dst`. output_overrun when `dst` is too small: rans_warp_bound says what always suffices.
TransformOutcome rans_warp_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst,
                                            const RansWarpOptions& options);

// Decodes the stream `src`, by any encoder, into `dst`. Its structure is checked before a byte is written.
TransformOutcome rans_warp_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

// The two halves of these functions, for other code that makes the same bytes. Of the encoder: writes what stands
// before the chunks. ok with where the chunks begin, or with the whole stream where `src` is empty.
struct RansWarpHead {
  std::array<uint16_t, kSymbols> frequencies{};
  size_t counts_at = 0;  // of each chunk's words, u32
};
TransformOutcome begin_rans_warp(std::span<const uint8_t> src, std::span<uint8_t> dst, const RansWarpOptions& options,
                                 RansWarpHead& head);

// Of the decoder: a stream whose structure is in order, and whose content fits `room_bytes`.
struct RansWarpStream {
  uint32_t raw_bytes = 0, scale_bits = 0;
  size_t chunk_bytes = 0;  // raw, of all chunks but the last
  std::array<uint16_t, kSymbols> frequencies{};
  const uint8_t* counts = nullptr;  // of each chunk's words, u32
  const uint8_t* chunks = nullptr;  // one behind the other
};
StreamStatus open_rans_warp(std::span<const uint8_t> src, size_t room_bytes, RansWarpStream& stream);

// Bytes that a stream of `raw_bytes` takes at most.
constexpr uint64_t rans_warp_bound(uint64_t raw_bytes, const RansWarpOptions& options) {
  const uint64_t chunks = (raw_bytes >> options.chunk_bits) + 1;
  return kRansWarpHeaderBytes + kMaxTableBytes + chunks * (4 + 4 * kRansWarpLanes) + 2 * raw_bytes;
}

}  // namespace ptxkit::kernels
