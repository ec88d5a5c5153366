// Scalar references of the kernels `rans_warp_encode` and `rans_warp_decode`, for one item.
#pragma once

#include <array>
#include <span>

#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/rans_format.hpp"

namespace ptxkit::kernels {

inline constexpr size_t kRansWarpStatesBytes = 4 * kRansWarpLanes;  // at the beginning of a chunk

// Codes `src` into `dst`. output_overrun if `dst` is too small; rans_warp_bound always suffices.
TransformOutcome rans_warp_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst,
                                            const RansWarpOptions& options);

// Decodes the stream `src`, from any encoder, into `dst`. The structure is checked before any byte is written.
TransformOutcome rans_warp_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

// The two halves of these functions, for other code that produces the same bytes. The encoder's first half writes
// everything before the chunks. Its outcome is ok with the offset of the chunks, or with the size of the whole stream
// if `src` is empty.
struct RansWarpHead {
  std::array<uint16_t, kSymbols> frequencies{};
  size_t counts_at = 0;  // offset of the number of words of each chunk, u32
};
TransformOutcome begin_rans_warp(std::span<const uint8_t> src, std::span<uint8_t> dst, const RansWarpOptions& options,
                                 RansWarpHead& head);

// The decoder's first half: a stream whose structure is valid and whose content fits `room_bytes`.
struct RansWarpStream {
  uint32_t raw_bytes = 0, scale_bits = 0;
  size_t chunk_bytes = 0;  // raw bytes of every chunk but the last
  std::array<uint16_t, kSymbols> frequencies{};
  const uint8_t* counts = nullptr;  // the number of words of each chunk, u32
  const uint8_t* chunks = nullptr;  // contiguous
};
StreamStatus open_rans_warp(std::span<const uint8_t> src, size_t room_bytes, RansWarpStream& stream);

// The largest size in bytes of a stream of `raw_bytes`.
constexpr uint64_t rans_warp_bound(uint64_t raw_bytes, const RansWarpOptions& options) {
  const uint64_t chunks = (raw_bytes >> options.chunk_bits) + 1;
  return kRansWarpHeaderBytes + kMaxTableBytes + chunks * (4 + 4 * kRansWarpLanes) + 2 * raw_bytes;
}

}  // namespace ptxkit::kernels
