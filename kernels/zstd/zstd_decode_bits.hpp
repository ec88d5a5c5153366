// Bits that a lane reads from the end of a range of the item to its start, as Zstandard's decoders do (RFC 8878, 4.1).
#pragma once

#include <array>

#include "kernels/transform.hpp"
#include "kernels/zstd/zstd_decode_batch.hpp"

namespace ptxkit::kernels {

using ZstdLaneSource = dsl::Ptr<dsl::read_only, dsl::u8, 1, dsl::Rate::thread>;

// Reads aligned words, none of which begins before word 1 of the item and of which the first is put together from
// bytes, so that no byte outside the item is read. Behind the last bit come bits of what stands before the range.
class ZstdLaneBits {
 public:
  ZstdLaneBits(dsl::Kernel& k, const ZstdLaneSource& src)
      : k_(k),
        src_(src),
        words_(src.align_down<4>().as<dsl::u32>()),
        skew_(dsl::trunc<dsl::u32>(src.address()) & 3),
        high_(k, 0),
        low_(k, 0),
        ahead_(k, 0),
        used_(k, 0),
        next_(k, 0),
        left_(k, 0),
        is_bad_(k, 1) {}

  // Opens the range, which begins at least 8 bytes behind the start of the item. It is bad if it has no end mark.
  void open(const LaneU32& begin, const LaneU32& end) {
    using namespace dsl;
    is_bad_ = 1;
    k_.if_(begin < end, [&] {
      const LaneU32 last = zext<u32>(src_.at(end - 1).load());
      is_bad_ = zext<u32>(last == 0);
      left_ = (end - begin) * 8 - 8 + 31 - clz(last | 1);
      const LaneU32 word = (end - 1 + skew_) >> 2;
      high_ = 0;
      unrolled<4>([&](auto i) {
        const LaneU32 at = word * 4 + u32{i} - skew_;
        k_.if_(at < end, [&] { high_ |= zext<u32>(src_.at(at).load()) << 8 * i; });
      });
      used_ = clz(*high_ | 1) + 1;
      next_ = before(word);
      low_ = words_.at(*next_).load();
      next_ = before(*next_);
      ahead_ = words_.at(*next_).load();
      skip(k_.constant<u32>(0));
    });
  }
  LaneBool is_bad() const { return *is_bad_ != 0; }

  // The next 32 bits, the first one in bit 31.
  LaneU32 peek() const { return dsl::funnel_left(*low_, *high_, *used_); }
  // The first `count` bits of `bits`, at most 31.
  static LaneU32 first(const LaneU32& bits, const LaneU32& count) { return dsl::funnel_left(bits, 0, count); }

  // Skips at most 32 bits of a range that is open.
  template <class Count>
  void skip(const Count& count) {
    using namespace dsl;
    used_ += count;
    left_ -= count;
    // Without a branch, since lanes come to the next word at different times.
    const LaneBool turns = *used_ >= 32;
    high_ = select(turns, *low_, *high_);
    low_ = select(turns, *ahead_, *low_);
    next_ = select(turns, before(*next_), *next_);
    ahead_ = words_.at(*next_).load();
    used_ &= 31;
  }
  // Reads at most 31 bits.
  LaneU32 read(const LaneU32& count) {
    const LaneU32 value = first(peek(), count);
    skip(count);
    return value;
  }

  LaneBool is_at_end() const { return *left_ == 0; }
  LaneBool is_past_end() const { return *left_ >= 1u << 31; }

 private:
  static LaneU32 before(const LaneU32& word) { return dsl::max(word, 2) - 1; }

  dsl::Kernel& k_;
  ZstdLaneSource src_;
  dsl::Ptr<dsl::read_only, dsl::u32, 4, dsl::Rate::thread> words_;
  LaneU32 skew_;                // of the item's address to a multiple of 4
  LaneVar high_, low_, ahead_;  // three words; `used_` bits of the first, fewer than 32, have been read
  LaneVar used_;
  LaneVar next_;  // the number of `ahead_`
  LaneVar left_;  // bits in the range, modulo 2^32
  LaneVar is_bad_;
};

// The same for lanes that read different numbers of bits side by side: 96 bits are loaded at a time from wherever the
// lane is, so that no lane waits for the load of another.
class ZstdLaneWindow {
 public:
  ZstdLaneWindow(dsl::Kernel& k, const ZstdLaneSource& src)
      : k_(k),
        src_(src),
        words_(src.align_down<4>().as<dsl::u32>()),
        skew_(dsl::trunc<dsl::u32>(src.address()) & 3),
        place_(k, 0),
        begin_(k, 0),
        top_(k, 0),
        top_word_(k, 0),
        window_{LaneVar(k, 0), LaneVar(k, 0), LaneVar(k, 0)},
        is_bad_(k, 1) {}

  // As ZstdLaneBits::open; then load() has to be called.
  void open(const LaneU32& begin, const LaneU32& end) {
    using namespace dsl;
    is_bad_ = 1;
    k_.if_(begin < end, [&] {
      const LaneU32 last = zext<u32>(src_.at(end - 1).load());
      is_bad_ = zext<u32>(last == 0);
      begin_ = (begin + skew_) * 8;
      place_ = (end + skew_) * 8 - 1 - (clz(last | 1) - 24);
      top_word_ = (end - 1 + skew_) >> 2;
      top_ = 0;
      unrolled<4>([&](auto i) {
        const LaneU32 at = *top_word_ * 4 + u32{i} - skew_;
        k_.if_(at < end, [&] { top_ |= zext<u32>(src_.at(at).load()) << 8 * i; });
      });
    });
  }
  LaneBool is_bad() const { return *is_bad_ != 0; }

  // Loads the next 96 bits. The lane is not past its end.
  void load() {
    using namespace dsl;
    const LaneU32 before = *place_ - 1, word = before >> 5, used = 31 - (before & 31);
    // Words before word 1 are not the item's; the range begins behind them.
    const auto from = [&](u32 i) { return words_.at(max(word, k_.constant(i + 1)) - k_.constant(i)).load(); };
    const LaneU32 w0 = select(word == *top_word_, *top_, words_.at(min(word, *top_word_ - 1)).load());
    const LaneU32 w1 = from(1), w2 = from(2), w3 = from(3);
    window_[0] = funnel_left(w1, w0, used);
    window_[1] = funnel_left(w2, w1, used);
    window_[2] = funnel_left(w3, w2, used);
  }
  // 32 bits from bit `from` of the window on, at most 31 and at most 63.
  LaneU32 peek() const { return *window_[0]; }
  LaneU32 peek_near(const LaneU32& from) const { return dsl::funnel_left(*window_[1], *window_[0], from); }
  LaneU32 peek_far(const LaneU32& from) const {
    return select(from < 32, peek_near(from), dsl::funnel_left(*window_[2], *window_[1], from));
  }
  template <class Count>
  void skip(const Count& count) {
    place_ -= count;
  }

  LaneBool is_at_end() const { return *place_ == *begin_; }
  LaneBool is_past_end() const { return *place_ - *begin_ >= 1u << 31; }

 private:
  dsl::Kernel& k_;
  ZstdLaneSource src_;
  dsl::Ptr<dsl::read_only, dsl::u32, 4, dsl::Rate::thread> words_;
  LaneU32 skew_;            // of the item's address to a multiple of 4
  LaneVar place_, begin_;   // bits from there to the bit after the next one, and to the first
  LaneVar top_, top_word_;  // the last word, of which bytes may be behind the range, and its number
  std::array<LaneVar, 3> window_;
  LaneVar is_bad_;
};

}  // namespace ptxkit::kernels
