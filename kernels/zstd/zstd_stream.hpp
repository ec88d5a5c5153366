// Bits that the lanes of a warp write side by side, as Zstandard's encoders order them: the last lane's come first,
// from the lowest bit of a byte on, and the bit 1 ends the stream.
#pragma once

#include "kernels/transform.hpp"

namespace ptxkit::kernels {

// Lanes share a stream in groups of `group`, a power of two. A byte in which the bits of several lanes meet is
// completed by the one lane of them that has its highest bit, or by the first lane of the group.
class ZstdLaneStream {
 public:
  // `bits`: how many the lane will append.
  ZstdLaneStream(dsl::Kernel& k, const StreamRoom& dst, const LaneU32& bits, const WarpU32& group)
      : k_(k),
        dst_(dst),
        first_lane_(k.lane() & ~(group - 1)),
        last_lane_(k.lane() | (group - 1)),
        sum_(dsl::inclusive_sum(bits)),
        begin_(dsl::shuffle(sum_, last_lane_) - sum_),
        bytes_((dsl::shuffle(sum_, last_lane_) - dsl::shuffle(sum_ - bits, first_lane_)) / 8 + 1),
        first_byte_(k, 0),
        next_(k, 0),
        held_(k, 0),
        buffer_(k, 0) {}

  // The bytes of the lane's stream.
  LaneU32 size_bytes() const { return bytes_; }
  LaneBool is_first() const { return k_.lane() == first_lane_; }

  // The lane's stream is written at `at`.
  void begin(const LaneU32& at) {
    first_byte_ = at + begin_ / 8;
    next_ = *first_byte_;
    held_ = begin_ % 8;
    buffer_ = 0;
  }

  // Appends the `count` bits of `field`, at most 16.
  void append(const LaneU32& field, const LaneU32& count) {
    using namespace dsl;
    buffer_ |= field << *held_;
    held_ += count;
    k_.if_(*held_ >= 16, [&] {
      store_u16(dst_.at(*next_), *buffer_);
      next_ += 2;
      buffer_ >>= 16;
      held_ -= 16;
    });
  }

  // Completes the streams. All lanes call it.
  void end() {
    using namespace dsl;
    k_.if_(*held_ >= 8, [&] {
      dst_.at(*next_).store(trunc<u8>(*buffer_));
      next_ += 1;
      buffer_ >>= 8;
      held_ -= 8;
    });
    // What the lanes behind this one have left of the byte in which this one begins: a suffix scan that stops at lanes
    // that completed a byte.
    const LaneBool completed = *next_ != *first_byte_;
    LaneVar left(k_, *buffer_), stops(k_, zext<u32>(completed | (k_.lane() == last_lane_)));
    for (u32 distance = 1; distance < kWarpLanes; distance *= 2) {
      const LaneU32 behind = shuffle_down(*left, distance), behind_stops = shuffle_down(*stops, distance);
      left |= select(*stops != 0, 0, behind);
      stops |= behind_stops;
    }
    const LaneU32 carried = select(k_.lane() == last_lane_, 0, shuffle_down(*left, 1));
    k_.if_(completed, [&] {
      const auto place = dst_.at(*first_byte_);
      place.store(trunc<u8>(zext<u32>(place.load()) | carried));
    });
    k_.if_(is_first(), [&] { dst_.at(*next_).store(trunc<u8>(*left | shift_left(1, *held_))); });
  }

 private:
  dsl::Kernel& k_;
  StreamRoom dst_;
  LaneU32 first_lane_, last_lane_;  // of the group
  LaneU32 sum_, begin_, bytes_;
  LaneVar first_byte_, next_;
  LaneVar held_, buffer_;  // fewer than 16 bits between calls
};

}  // namespace ptxkit::kernels
