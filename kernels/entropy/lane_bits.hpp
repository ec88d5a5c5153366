// The bits of 32 lanes, a thread each; lane_bits_reference.hpp says the same for one thread.
#pragma once

#include "kernels/entropy/frequencies.hpp"
#include "kernels/entropy/lane_format.hpp"

namespace ptxkit::kernels {

// Calls the coder for the fields of the lane from the last to the first; see for_fields_backwards.
template <class Coder, class Emit>
void for_fields_backwards(TransformItem& item, Coder& coder, const Emit& emit) {
  using namespace dsl;
  Kernel& k = item.k;
  coder.begin();
  const LaneU32 lane = k.lane();
  const LaneU32 count = select(lane < item.src_size, (item.src_size - lane - 1) / kBitLanes + 1, 0);
  LaneVar at(k, lane + (count - 1) * kBitLanes);
  k.range(0, count, 1, [&](const auto&) {
    coder.symbol(zext<u32>(item.src.at(*at).load()), emit);
    at -= kBitLanes;
  });
  coder.end(emit);
}

// Writes the sizes and the bits of all lanes at `at`. The bits are counted first, which gives each lane its place.
template <class Coder, class Fail>
void write_lanes(TransformItem& item, const WarpU32& at, Coder& coder, const Fail& fail_if) {
  using namespace dsl;
  Kernel& k = item.k;
  LaneVar bits(k, 0);
  for_fields_backwards(item, coder, [&](const LaneU32&, const LaneU32& count) { bits += count; });
  const LaneU32 bytes = (*bits + 7) / 8;
  const LaneU32 before = exclusive_sum(bytes);
  const WarpU32 end = at + kLaneSizesBytes + reduce_add(bytes);
  fail_if(end > item.capacity, StreamStatus::output_overrun);
  mark_warp(k, Mark::emit, at);
  store_u16(item.dst.at(at + k.lane() * 2), bytes);
  LaneVar to(k, at + kLaneSizesBytes + before + bytes), held(k, bytes * 8 - *bits), buffer(k, 0);
  for_fields_backwards(item, coder, [&](const LaneU32& field, const LaneU32& count) {
    buffer |= field << *held;
    held += count;
    k.thread_loop([&](auto& whole_bytes) {
      whole_bytes.break_if(*held < 8);
      to -= 1;
      item.dst.at(*to).store(trunc<u8>(*buffer));
      buffer >>= 8;
      held -= 8;
    });
  });
  item.size_bytes = end;
}

// The bits of the lane; behind its end there are zeros.
class LaneReader {
 public:
  // The sizes stand at `at`.
  template <class Fail>
  LaneReader(TransformItem& item, const WarpU32& at, const Fail& fail_if)
      : item_(item), k_(item.k), left_(k_, 0), next_(k_, 0), buffer_(k_, 0), held_(k_, 0), missing_(k_, 0) {
    using namespace dsl;
    fail_if(item.src_size - at < kLaneSizesBytes, StreamStatus::input_overrun);
    left_ = load_u16(item.src.at(at + k_.lane() * 2));
    const WarpU32 first = at + kLaneSizesBytes, total = reduce_add(*left_);
    fail_if(item.src_size - first < total, StreamStatus::input_overrun);
    fail_if(item.src_size - first != total, StreamStatus::corrupt);
    next_ = first + exclusive_sum(*left_);
  }

  // At least kMaxFieldBits, from bit 31 on.
  LaneU32 peek() {
    using namespace dsl;
    k_.thread_loop([&](auto& bytes) {
      bytes.break_if(*held_ > kMaxFieldBits);
      const LaneBool there = *left_ != 0;
      const LaneU32 byte = select(there, zext<u32>(item_.src.at(select(there, *next_, 0)).load()), 0);
      buffer_ |= byte << (24 - *held_);
      held_ += 8;
      next_ += 1;
      left_ -= zext<u32>(there);
      missing_ += zext<u32>(!there);
    });
    return *buffer_;
  }
  void skip(const LaneU32& count) {
    buffer_ <<= count;
    held_ -= count;
  }
  // A field of at most kMaxFieldBits.
  LaneU32 read(const LaneU32& count) {
    const LaneU32 field = peek() >> 1 >> (31 - count);
    skip(count);
    return field;
  }
  // All bytes were needed, and no more.
  LaneBool is_at_end() const { return (*left_ == 0) & (*held_ >= *missing_ * 8) & (*held_ - *missing_ * 8 < 8); }

 private:
  TransformItem& item_;
  dsl::Kernel& k_;
  LaneVar left_, next_;    // bytes of the lane, the next one's place
  LaneVar buffer_, held_;  // bits
  LaneVar missing_;        // bytes of zeros that were put into the buffer
};

}  // namespace ptxkit::kernels
