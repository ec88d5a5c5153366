// Bit streams of 32 lanes, written and read by one thread.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <tuple>

#include "kernels/entropy/lane_format.hpp"
#include "kernels/entropy/little_endian.hpp"
#include "kernels/transform_abi.hpp"

namespace ptxkit::kernels {

// The number of symbols of a lane in an item of `raw_bytes`.
constexpr size_t lane_symbols(size_t raw_bytes, uint32_t lane) {
  return lane < raw_bytes ? (raw_bytes - lane - 1) / kBitLanes + 1 : 0;
}

// Calls `code` for the fields of a lane from the last to the first: the symbols in reverse order, then the coder's own
// fields. A Coder has begin(), symbol(s, emit) and end(emit). emit(bits, count) takes a field of at most kMaxFieldBits.
template <class Coder, class Emit>
void for_fields_backwards(std::span<const uint8_t> raw, uint32_t lane, Coder& coder, const Emit& emit) {
  coder.begin();
  for (size_t i = lane_symbols(raw.size(), lane); i-- != 0;) coder.symbol(raw[i * kBitLanes + lane], emit);
  coder.end(emit);
}

// Writes the sizes and the bits of all lanes at `at` in `dst`.
template <class Coder>
TransformOutcome write_lanes(std::span<const uint8_t> raw, std::span<uint8_t> dst, size_t at, Coder& coder) {
  std::array<size_t, kBitLanes> bits{};
  size_t end = at + kLaneSizesBytes;
  for (uint32_t lane = 0; lane < kBitLanes; ++lane) {
    for_fields_backwards(raw, lane, coder, [&](uint32_t, uint32_t count) { bits[lane] += count; });
    end += (bits[lane] + 7) / 8;
  }
  if (end > dst.size()) return {StreamStatus::output_overrun, 0};
  uint8_t* next = dst.data() + at + kLaneSizesBytes;
  for (uint32_t lane = 0; lane < kBitLanes; ++lane) {
    const size_t bytes = (bits[lane] + 7) / 8;
    write_u16(dst.data() + at + size_t{2} * lane, static_cast<uint32_t>(bytes));
    next += bytes;
    uint8_t* to = next;
    auto held = static_cast<uint32_t>(8 * bytes - bits[lane]);
    uint32_t buffer = 0;
    for_fields_backwards(raw, lane, coder, [&](uint32_t field, uint32_t count) {
      buffer |= field << held;
      for (held += count; held >= 8; held -= 8) {
        *--to = static_cast<uint8_t>(buffer);
        buffer >>= 8;
      }
    });
  }
  return {StreamStatus::ok, static_cast<uint32_t>(end)};
}

// Reads the bits of one lane. After its end it reads zeros.
class LaneReader {
 public:
  LaneReader() = default;
  explicit LaneReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  // The next bits, at least kMaxFieldBits, the first one in bit 63.
  uint64_t peek() {
    for (; held_ <= 56; held_ += 8) {
      if (next_ < bytes_.size()) buffer_ |= uint64_t{bytes_[next_]} << (56 - held_);
      ++next_;
    }
    return buffer_;
  }
  void skip(uint32_t count) {
    buffer_ <<= count;
    held_ -= count;
  }
  uint32_t read(uint32_t count) {
    const auto field = static_cast<uint32_t>(peek() >> 32) >> 1 >> (31 - count);
    skip(count);
    return field;
  }
  // Whether exactly the bytes of the lane have been used.
  bool is_at_end() const { return (8 * next_ - held_ + 7) / 8 == bytes_.size(); }

 private:
  std::span<const uint8_t> bytes_;
  uint64_t buffer_ = 0;
  size_t next_ = 0;
  uint32_t held_ = 0;
};

// The bytes of all lanes, whose sizes are at `at` in `src`.
using Lanes = std::array<std::span<const uint8_t>, kBitLanes>;
inline StreamStatus open_lanes(std::span<const uint8_t> src, size_t at, Lanes& lanes) {
  if (src.size() - at < kLaneSizesBytes) return StreamStatus::input_overrun;
  size_t next = at + kLaneSizesBytes;
  for (uint32_t lane = 0; lane < kBitLanes; ++lane) {
    const size_t bytes = read_u16(src.data() + at + size_t{2} * lane);
    if (src.size() - next < bytes) return StreamStatus::input_overrun;
    lanes[lane] = src.subspan(next, bytes);
    next += bytes;
  }
  return next == src.size() ? StreamStatus::ok : StreamStatus::corrupt;
}

inline std::array<LaneReader, kBitLanes> readers_of(const Lanes& lanes) {
  std::array<LaneReader, kBitLanes> readers;
  for (uint32_t lane = 0; lane < kBitLanes; ++lane) readers[lane] = LaneReader(lanes[lane]);
  return readers;
}

}  // namespace ptxkit::kernels
