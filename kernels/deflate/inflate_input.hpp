// The bits of an item, of which a part is in shared memory.
#pragma once

#include "kernels/deflate/inflate_format.hpp"
#include "kernels/transform.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using InflateSource = dsl::Ptr<dsl::read_only, dsl::u8, 1, dsl::Rate::warp>;
using InflateRoom = dsl::Ptr<dsl::global, dsl::u8, 1, dsl::Rate::warp>;
template <class T>
using InflateShared = dsl::Ptr<dsl::shared, T, 16, dsl::Rate::warp>;

// A place is the number of a bit, counted from the aligned word in which the item begins. Behind the item all bits are
// 0.
class InflateInput {
 public:
  static constexpr dsl::u32 kSharedBytes = 4 * kInflateStagedWords;

  InflateInput(dsl::Kernel& k, const InflateSource& src, const WarpU32& size)
      : k_(k),
        src_(src),
        words_(src.align_down<4>().as<dsl::u32>()),
        staged_(k.shared<dsl::u32, kInflateStagedWords, 16>("staged").data()),
        skew_(dsl::trunc<dsl::u32>(src.address()) & 3),
        end_((skew_ + size) * 8),
        first_(k, 0) {}

  WarpU32 begin() const { return skew_ * 8; }
  WarpU32 end() const { return end_; }
  // Of the byte in which the bit before `place` is, the end.
  static WarpU32 byte_end(const WarpU32& place) { return (place + 7) & ~7u; }
  // Where a byte of the item is that begins at `place`.
  InflateSource at(const WarpU32& place) const { return src_.at(place / 8 - skew_); }

  // Reads the words from that of `place` on into shared memory. No byte outside the item is read, so words that go over
  // its ends are put together from bytes.
  void stage(const WarpU32& place) {
    using namespace dsl;
    first_ = place >> 5;
    constexpr u32 kRows = kInflateStagedWords / kWarpLanes;
    const WarpBool is_inside = (*first_ >= (skew_ + 3) / 4) & (*first_ + kInflateStagedWords <= end_ / 32);
    k_.sync_warp();  // every lane has read what was there
    k_.if_(is_inside, [&] {
        unrolled<kRows>([&](auto row) {
          const LaneU32 i = k_.lane() + u32{row} * kWarpLanes;
          staged_.at(i).store(words_.at(*first_ + i).load());
        });
      }).else_([&] {
      k_.range(k_.lane(), k_.constant(kInflateStagedWords), kWarpLanes, [&](const LaneU32& i) {
        LaneVar word(k_, 0);
        k_.range(k_.constant<u32>(0), k_.constant<u32>(4), 1, [&](const auto& byte) {
          const LaneU32 at = (*first_ + i) * 4 + byte;
          k_.if_((at >= skew_) & (at < end_ / 8), [&] { word |= zext<u32>(src_.at(at - skew_).load()) << byte * 8; });
        });
        staged_.at(i).store(*word);
      });
    });
    k_.sync_warp();
  }

  // The place of bit 0 of what is staged. Positions count from there.
  WarpU32 staged_begin() const { return *first_ << 5; }
  // 32 bits from a position on, the first one lowest.
  LaneU32 bits(const LaneU32& position) const { return window(position).bits(); }

  // 64 bits from a position on.
  struct Window {
    LaneU32 low, middle, high, position;

    LaneU32 bits() const { return dsl::funnel_right(low, middle, position); }
    // Those behind the first `count`, at most 32.
    LaneU32 bits_behind(const LaneU32& count) const {
      using namespace dsl;
      const LaneU32 shift = (position & 31) + count;
      const LaneBool is_next = shift >= 32;
      return funnel_right(select(is_next, middle, low), select(is_next, high, middle), shift);
    }
  };
  Window window(const LaneU32& position) const {
    const auto word = staged_.at(position >> 5);
    return {word.load(), word.template at<1>().load(), word.template at<2>().load(), position};
  }

 private:
  dsl::Kernel& k_;
  InflateSource src_;
  dsl::Ptr<dsl::read_only, dsl::u32, 4, dsl::Rate::warp> words_;
  InflateShared<dsl::u32> staged_;
  WarpU32 skew_;  // of the item's address to a multiple of 4
  WarpU32 end_;
  WarpVar first_;  // the first word that is staged
};

}  // namespace ptxkit::kernels
