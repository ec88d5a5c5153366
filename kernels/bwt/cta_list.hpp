// Lists in device memory that a CTA processes together. Each warp takes a contiguous stretch, 32 elements in each
// iteration.
//
// For the builder a data-dependent condition is uniform in a warp at most, so no barrier may depend on it. Every step
// therefore takes `busy`. A step that is not busy executes only its barriers.
#pragma once

#include "kernels/transform.hpp"

namespace ptxkit::kernels {

using BlockVar = dsl::Var<dsl::u32, dsl::Rate::block>;
using Words = dsl::Ptr<dsl::global, dsl::u32, 8>;
using SharedWords = dsl::Ptr<dsl::shared, dsl::u32, 16>;

// The stretches of a CTA's warps, and the exchange of totals between warps. The CTA has `Threads` threads.
template <dsl::u32 Threads>
class CtaStretches {
 public:
  static constexpr dsl::u32 kWarps = Threads / dsl::kWarpLanes;
  static constexpr dsl::u32 kSharedBytes = 4 * 2 * dsl::kWarpLanes;

  explicit CtaStretches(dsl::Kernel& k)
      : k_(k), of_warps_(k.shared<dsl::u32, 2 * dsl::kWarpLanes, 16>("of_warps").data()) {}

  // The first element of a warp's stretch. The stretch after the last warp begins at `count`.
  WarpU32 stretch_begin(const WarpU32& count, const WarpU32& warp) {
    return dsl::min(warp * ((count + (Threads - 1)) / Threads * dsl::kWarpLanes), count);
  }

  // Calls body(base, i, inside) for the warp's stretch of `count` elements, 32 from `base` on in each iteration. In
  // lanes that are not inside, i is `base`.
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

  // The sum of `found` over the previous warps and over all warps, and the maximum of `last` over the previous warps.
  struct Totals {
    WarpU32 sum_before, sum, last_before;
  };
  // Contains barriers, so all warps call it.
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

// Adds counters, with which lists are sorted by digits.
template <dsl::u32 Threads>
class CtaSort : public CtaStretches<Threads> {
  using Base = CtaStretches<Threads>;
  using Base::k_;

 public:
  using Base::kWarps, Base::for_stretch, Base::totals;
  static constexpr dsl::u32 kDigitBits = 8, kDigits = 1u << kDigitBits;
  // The number of digit counters that a thread sums.
  static constexpr dsl::u32 kCountersOfThread = kDigits / dsl::kWarpLanes;
  static constexpr dsl::u32 kSharedBytes = Base::kSharedBytes + 4 * kDigits * kWarps;

  explicit CtaSort(dsl::Kernel& k) : Base(k), counters_(k.shared<dsl::u32, kDigits * kWarps, 16>("counters").data()) {}

  // A stable sort by one digit. load(i) is element i, digit(element) is below kDigits, place(i, element, position)
  // stores the element at its new position.
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
  // Counters are ordered by digit, then by warp, which is the order of the sorted elements.
  auto counter_of(const LaneU32& digit) { return counters_.at(digit * kWarps + k_.warp()); }

  // Replaces each counter by the position of the first element of its digit and warp (an exclusive prefix sum).
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
