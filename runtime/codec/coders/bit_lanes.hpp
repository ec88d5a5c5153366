// The streams of bits of 32 lanes, four lanes at a time. A place is a number of bits from the front of the source.
#pragma once

#include <algorithm>

#include "kernels/entropy/lane_bits_reference.hpp"
#include "runtime/codec/coders/memory.hpp"

namespace ptxkit::cpu {

inline constexpr uint32_t kLaneGroup = 4;    // lanes whose states fit a CPU's registers
inline constexpr uint32_t kWindowBits = 57;  // of a window, at least

// The bits from a place on, the first in bit 63; the eight bytes from there on must be there.
inline uint64_t window_at(const uint8_t* src, size_t place) { return load_big_endian(src + place / 8) << place % 8; }

// How many windows surely lie before `safe`, each at most kWindowBits behind the one before.
inline size_t windows_before(size_t place, size_t safe) { return place < safe ? (safe - place) / kWindowBits : 0; }

// Places below this have a whole window in `src`.
inline size_t safe_places(std::span<const uint8_t> src) { return src.size() < 8 ? 0 : 8 * (src.size() - 8); }

// A lane: its next bit, and its end.
struct BitLane {
  size_t place = 0, end = 0;

  BitLane() = default;
  BitLane(std::span<const uint8_t> src, std::span<const uint8_t> lane)
      : place(8 * static_cast<size_t>(lane.data() - src.data())), end(place + 8 * lane.size()) {}

  // All bytes were needed, and no more.
  bool is_at_end() const { return place <= end && end - place < 8; }

  // The same bits as window_at, with zeros behind `src`, at any place.
  uint64_t careful_window(std::span<const uint8_t> src) const {
    uint64_t window = 0;
    for (size_t i = 0; i < 8; ++i) {
      const size_t at = place / 8 + i;
      window = window << 8 | (at < src.size() ? src[at] : 0);
    }
    return window << place % 8;
  }
};

// Writes the sizes of the lanes at `at` of `dst` and the lanes behind those. write(lane, to, size) writes a lane.
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
