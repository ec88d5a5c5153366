// Bit streams of 32 lanes, decoded four lanes at a time. A place is a bit position, counted from the start of the
// source.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "kernels/entropy/lane_bits_reference.hpp"
#include "kernels/entropy/lane_format.hpp"
#include "kernels/transform_abi.hpp"
#include "runtime/codec/coders/memory.hpp"

namespace ptxkit::cpu {

inline constexpr uint32_t kLaneGroup = 4;    // lanes whose states fit into the registers of a CPU
inline constexpr uint32_t kWindowBits = 57;  // valid bits in a window, at least

// The bits from `place` on, the first in bit 63. The eight bytes from its byte on must be readable.
inline uint64_t window_at(const uint8_t* src, size_t place) { return load_big_endian(src + place / 8) << place % 8; }

// A lower bound for the number of windows that start before `safe`, if each starts at most kWindowBits after the one
// before.
inline size_t windows_before(size_t place, size_t safe) { return place < safe ? (safe - place) / kWindowBits : 0; }

// At places below this a whole window lies within `src`.
inline size_t safe_places(std::span<const uint8_t> src) { return src.size() < 8 ? 0 : 8 * (src.size() - 8); }

// A lane: the positions of its next bit and of its end.
struct BitLane {
  size_t place = 0, end = 0;

  BitLane() = default;
  BitLane(std::span<const uint8_t> src, std::span<const uint8_t> lane)
      : place(8 * static_cast<size_t>(lane.data() - src.data())), end(place + 8 * lane.size()) {}

  // The lane's last byte has been reached and not passed.
  bool is_at_end() const { return place <= end && end - place < 8; }

  // As window_at, for any place: bytes after the end of `src` read as zero.
  uint64_t careful_window(std::span<const uint8_t> src) const {
    uint64_t window = 0;
    for (size_t i = 0; i < 8; ++i) {
      const size_t at = place / 8 + i;
      window = window << 8 | (at < src.size() ? src[at] : 0);
    }
    return window << place % 8;
  }
};

// Writes the lanes' sizes at byte `at` of `dst`, and the lanes after them. write(lane, to, size) writes one lane.
// Returns output_overrun if they do not fit.
template <class Write>
kernels::TransformOutcome write_bit_lanes(std::span<uint8_t> dst, size_t at,
                                          const std::array<size_t, kernels::kBitLanes>& sizes, const Write& write) {
  size_t end = at + kernels::kLaneSizesBytes;
  for (const size_t size : sizes) end += size;
  if (end > dst.size()) return {kernels::StreamStatus::output_overrun, 0};
  uint8_t* to = dst.data() + at + kernels::kLaneSizesBytes;
  for (uint32_t lane = 0; lane < kernels::kBitLanes; ++lane) {
    store(dst.data() + at + size_t{2} * lane, static_cast<uint16_t>(sizes[lane]));
    write(lane, to, sizes[lane]);
    to += sizes[lane];
  }
  return {kernels::StreamStatus::ok, static_cast<uint32_t>(end)};
}

}  // namespace ptxkit::cpu
