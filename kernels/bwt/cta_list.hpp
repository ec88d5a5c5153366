// Lists in device memory that a CTA works through together: each warp takes a stretch, 32 elements a turn, in order.
//
// What is data-dependent is uniform only in a warp for the builder, so barriers stand outside of it: every step takes
// `busy`, and a step that is not busy consists of its barriers.
#pragma once

#include "kernels/transform.hpp"

namespace ptxkit::kernels {

using BlockVar = dsl::Var<dsl::u32, dsl::Rate::block>;
using Words = dsl::Ptr<dsl::global, dsl::u32, 8>;
using SharedWords = dsl::Ptr<dsl::shared, dsl::u32, 16>;

// What warps tell each other, and the stretches. The CTA has Threads.
template <dsl::u32 Threads>
class CtaStretches {
 public:
  static constexpr dsl::u32 kWarps = Threads / dsl::kWarpLanes;
  static constexpr dsl::u32 kSharedBytes = 4 * 2 * dsl::kWarpLanes;

  explicit CtaStretches(dsl::Kernel& k)
      : k_(k), of_warps_(k.shared<dsl::u32, 2 * dsl::kWarpLanes, 16>("of_warps").data()) {}

  // Where the stretch of a warp begins; those of all end at `count`.
  WarpU32 stretch_begin(const WarpU32& count, const WarpU32& warp) {
    return dsl::min(warp * ((count + (Threads - 1)) / Threads * dsl::kWarpLanes), count);
  }

  // body(base, i, inside): the warp's stretch of `count` elements, 32 from `base` a turn; i is `base` where a lane is
  // not inside.
  template <class Body>
  void for_stretch(const WarpU32& count, const Body& body) {
    for_each_between(stretch_begin(count, k_.warp()), stretch_begin(count, k_.warp() + 1), body);
  }
  template <class Body>
  void for_each_between(const WarpU32& begin, const WarpU32& end, const Body& body) {
    k_.range(begin, end, dsl::kWarpLanes, [&](const WarpU32& base) {
      const LaneBool inside = base + k_.lane() < end;
      body(base, base + dsl::select(inside, k_.lane(), 0), inside);
    });
  }

  // Sum and maximum over the warps of what each has found: of those before this one, and of all.
  struct Totals {
    WarpU32 sum_before, sum, last_before;
  };
  // Barriers stand in it, so all warps come here.
  Totals totals(const WarpU32& found, const WarpU32& last) {
    using namespace dsl;
    k_.once_per_warp([&] {
      of_warps_.at(k_.warp()).store(found);
      of_warps_.at(k_.warp() + kWarpLanes).store(last);
    });
    k_.barrier();
    const LaneBool is_warp = k_.lane() < kWarps;
    const LaneU32 other = select(is_warp, k_.lane(), 0);
    const LaneU32 its_found = select(is_warp, of_warps_.at(other).load(), 0);
    const LaneU32 its_last = of_warps_.at(other + kWarpLanes).load();
    const LaneBool is_before = k_.lane() < k_.warp();
    const Totals result{reduce_add(select(is_before, its_found, 0)), reduce_add(its_found),
                        reduce_max(select(is_before, its_last, 0))};
    k_.barrier();
    return result;
  }
  WarpU32 sum_of(const WarpU32& found) { return totals(found, k_.constant(dsl::u32{0})).sum; }

 protected:
  dsl::Kernel& k_;

 private:
  SharedWords of_warps_;
};

// The same with counters, to sort lists by digits.
template <dsl::u32 Threads>
class CtaSort : public CtaStretches<Threads> {
  using Base = CtaStretches<Threads>;
  using Base::k_;

 public:
  using Base::kWarps, Base::for_stretch, Base::totals;
  static constexpr dsl::u32 kDigitBits = 8, kDigits = 1u << kDigitBits;
  // A thread sums up so many of the digits' counters.
  static constexpr dsl::u32 kCountersOfThread = kDigits / dsl::kWarpLanes;
  static constexpr dsl::u32 kSharedBytes = Base::kSharedBytes + 4 * kDigits * kWarps;

  explicit CtaSort(dsl::Kernel& k) : Base(k), counters_(k.shared<dsl::u32, kDigits * kWarps, 16>("counters").data()) {}

  // A stable sort by one digit. load(i) is element i, digit(element) below kDigits; place(i, element, position) puts it
  // where it belongs.
  template <class Load, class Digit, class Place>
  void sort_by_digit(const WarpU32& count, const WarpBool& busy, const Load& load, const Digit& digit,
                     const Place& place) {
    using namespace dsl;
    k_.if_(busy, [&] {
      unrolled<kCountersOfThread>(
          [&](auto i) { counters_.at(k_.thread() + k_.constant(i * Threads)).store(k_.constant(u32{0})); });
    });
    k_.barrier();
    k_.if_(busy, [&] {
      for_stretch(count, [&](const WarpU32&, const LaneU32& i, const LaneBool& inside) {
        const LaneU32 mine = digit(load(i));
        const LaneU32 same = match_any(select(inside, mine, kDigits));
        k_.if_(inside & ((same & k_.lanes_below()) == 0), [&] {
          const auto counter = counter_of(mine);
          counter.store(counter.load() + popc(same));
        });
        k_.sync_warp();
      });
    });
    k_.barrier();
    sum_counters();
    k_.if_(busy, [&] {
      for_stretch(count, [&](const WarpU32&, const LaneU32& i, const LaneBool& inside) {
        const auto element = load(i);
        const LaneU32 mine = digit(element);
        const LaneU32 same = match_any(select(inside, mine, kDigits));
        const LaneU32 position = counter_of(mine).load() + popc(same & k_.lanes_below());
        k_.sync_warp();  // every lane has read before one writes
        k_.if_(inside, [&] {
          place(i, element, position);
          k_.if_((same >> k_.lane()) == 1, [&] { counter_of(mine).store(position + 1); });
        });
        k_.sync_warp();
      });
    });
    k_.barrier();
  }

 private:
  // Digit by digit, and of each digit warp by warp: in the order in which the elements will stand.
  auto counter_of(const LaneU32& digit) { return counters_.at(digit * kWarps + k_.warp()); }

  // Turns the counters into where each digit of each warp begins.
  void sum_counters() {
    using namespace dsl;
    const auto mine = counters_.at(times<kCountersOfThread>(k_.thread()));
    LaneVar sum(k_, 0);
    unrolled<kCountersOfThread>([&](auto i) { sum += mine.at(i).load(); });
    const auto before = totals(reduce_add(*sum), k_.constant(u32{0}));
    LaneVar next(k_, before.sum_before + exclusive_sum(*sum));
    unrolled<kCountersOfThread>([&](auto i) {
      const LaneU32 count = mine.at(i).load();
      mine.at(i).store(*next);
      next += count;
    });
    k_.barrier();
  }

  SharedWords counters_;
};

}  // namespace ptxkit::kernels
