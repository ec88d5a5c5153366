// Scalar references of the kernels `fse_encode` and `fse_decode`, for one item.
#pragma once

#include <span>
#include <vector>

#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/lane_bits_reference.hpp"

namespace ptxkit::kernels {

TransformOutcome fse_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst, const FseOptions& options);
TransformOutcome fse_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

// The two halves of these functions, for other code that produces the same bytes. The encoder's first half writes
// everything before the lanes' sizes. Its outcome is ok with the offset of the sizes, or with the size of the whole
// stream if `src` is empty.
struct FseTable {
  uint32_t accuracy_bits = 0;
  std::array<uint16_t, kSymbols> frequencies{};
};
TransformOutcome begin_fse(std::span<const uint8_t> src, std::span<uint8_t> dst, const FseOptions& options,
                           FseTable& table);

// The decoder's first half: a stream whose structure is valid and whose content fits `room_bytes`.
struct FseStream {
  uint32_t raw_bytes = 0;
  FseTable table;
  Lanes lanes;
};
StreamStatus open_fse(std::span<const uint8_t> src, size_t room_bytes, FseStream& stream);

// The symbol of each place of a table.
std::vector<uint8_t> spread_symbols(const FseTable& table);

// The largest size in bytes of a stream of `raw_bytes`. Each lane stores its last state and may pad its last byte.
constexpr uint64_t fse_bound(uint64_t raw_bytes) {
  return kLanedHeaderBytes + 1 + kMaxTableBytes + kLaneSizesBytes + 3 * uint64_t{kBitLanes} +
         (raw_bytes * kMaxAccuracyBits + 7) / 8;
}

}  // namespace ptxkit::kernels
