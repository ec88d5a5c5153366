// The common part of the suffix sorts: digit sorts, limits, ranks from an order, and the output of the block.
#pragma once

#include <array>
#include <utility>

#include "kernels/bwt/bwt_item.hpp"

namespace ptxkit::kernels {

// Stable sorts of lists by one digit. The CTA takes a tile of the list at a time. If each warp moved the elements of
// its own stretch, as CtaSort does, every digit of every warp would have its own write position. Those of all blocks
// exceed L2, so an eight-byte store would become a 32-byte write to device memory.
template <dsl::u32 Threads>
class DigitSort : public CtaStretches<Threads> {
  using Base = CtaStretches<Threads>;
  using Base::k_;

  // The warp's counter of a digit. Declared before its callers, which need its type.
  auto counter_of(const LaneU32& digit) { return counters_.at(k_.warp() * kDigits + digit); }
  // The count of `warp` for the digit with the thread's number.
  auto of_warp(const BlockU32& warp) { return counters_.at(warp * kDigits + k_.thread()); }
  // Calls body(warp) for all warps in order, a few at a time: the loads of all at once would need too many registers.
  template <class Body>
  void for_each_warp(const Body& body) {
    k_.range(k_.constant(dsl::u32{0}), kWarps, kWarpsAtOnce,
             [&](const BlockU32& first) { dsl::unrolled<kWarpsAtOnce>([&](auto i) { body(first + i); }); });
  }
  static constexpr dsl::u32 kWarpsAtOnce = 8;

 public:
  using Base::kWarps, Base::for_stretch, Base::totals;
  static constexpr dsl::u32 kDigitBits = 8, kDigits = 1u << kDigitBits;
  static constexpr dsl::u32 kTurns = 4;  // iterations of a warp in a tile
  static constexpr dsl::u32 kTileElements = kTurns * Threads;
  static constexpr dsl::u32 kSharedBytes = Base::kSharedBytes + 4 * kDigits * kWarps;

  explicit DigitSort(dsl::Kernel& k)
      : Base(k), counters_(k.shared<dsl::u32, kDigits * kWarps, 16>("counters").data()) {}

  // Sorts `count` elements, at most `bound`. Every element is loaded first by first_load(i, inside), which may change
  // it, then by load(i). digit(element) is below kDigits. place(i, element, position) stores it at its new position.
  template <class FirstLoad, class Load, class Digit, class Place>
  void sort_by_digit(const BlockU32& bound, const WarpU32& count, const WarpBool& busy, const FirstLoad& first_load,
                     const Load& load, const Digit& digit, const Place& place) {
    const LaneU32 found = count_digits(
        count, busy, [&](const LaneU32& i, const LaneBool& inside) { return digit(first_load(i, inside)); });
    place_by_digit(bound, count, busy, found, load, digit, place);
  }

  // The number of elements, among `count`, with the digit that is the thread's number; 0 for threads beyond the digits.
  // digit(i, inside) is the digit of element i.
  template <class Digit>
  LaneU32 count_digits(const WarpU32& count, const WarpBool& busy, const Digit& digit) {
    using namespace dsl;
    LaneVar found(k_, 0);
    k_.if_(busy, [&] {
      clear_counters();
      for_stretch(count, [&](const WarpU32&, const LaneU32& i, const LaneBool& inside) {
        static_cast<void>(count_digit(digit(i, inside), inside));
      });
    });
    k_.barrier();
    k_.if_(busy & (k_.warp() < kDigits / kWarpLanes),
           [&] { for_each_warp([&](const BlockU32& warp) { found += of_warp(warp).load(); }); });
    return *found;
  }

  // The second half of sort_by_digit, given the result of count_digits.
  template <class Load, class Digit, class Place>
  void place_by_digit(const BlockU32& bound, const WarpU32& count, const WarpBool& busy, const LaneU32& found,
                      const Load& load, const Digit& digit, const Place& place) {
    using namespace dsl;
    const auto before = totals(reduce_add(found), k_.constant(u32{0}));
    LaneVar next(k_, before.sum_before + exclusive_sum(found));  // next position for the digit with the thread's number
    k_.range(k_.constant(u32{0}), bound, kTileElements, [&](const BlockU32& tile) {
      const WarpBool here = busy & (tile < count);
      const WarpU32 first = tile + k_.warp() * (kTurns * kWarpLanes);
      const auto element_of = [&](auto turn) {
        const LaneU32 i = first + k_.constant(turn * kWarpLanes) + k_.lane();
        const LaneBool inside = i < count;
        return std::pair(select(inside, i, 0), inside);
      };
      struct Turn {
        explicit Turn(Kernel& k) : element(k, 0), rank(k, 0) {}
        Var<ValueType<decltype(load(LaneU32(first)))>, Rate::thread> element;
        LaneVar rank;  // among the elements with the same digit in the warp's part of the tile
      };
      std::array<Turn, kTurns> turns{Turn(k_), Turn(k_), Turn(k_), Turn(k_)};
      k_.if_(here, [&] {
        unrolled<kTurns>([&](auto turn) { turns[turn].element = load(element_of(turn).first); });
        clear_counters();
        unrolled<kTurns>(
            [&](auto turn) { turns[turn].rank = count_digit(digit(*turns[turn].element), element_of(turn).second); });
      });
      k_.barrier();
      k_.if_(here & (k_.warp() < kDigits / kWarpLanes), [&] {
        for_each_warp([&](const BlockU32& warp) {
          const LaneU32 counted = of_warp(warp).load();
          of_warp(warp).store(*next);
          next += counted;
        });
      });
      k_.barrier();
      k_.if_(here, [&] {
        unrolled<kTurns>([&](auto turn) {
          const auto [i, inside] = element_of(turn);
          k_.if_(inside, [&] {
            const auto element = *turns[turn].element;
            place(i, element, counter_of(digit(element)).load() + *turns[turn].rank);
          });
        });
      });
    });
    k_.barrier();
  }

 private:
  void clear_counters() {
    using namespace dsl;
    k_.sync_warp();  // every lane has read its counters of the previous tile
    unrolled<kDigits / kWarpLanes>(
        [&](auto i) { counter_of(k_.lane() + k_.constant(i * kWarpLanes)).store(k_.constant(u32{0})); });
    k_.sync_warp();
  }
  // Counts a digit, and returns how many of the warp's previous elements had it.
  LaneU32 count_digit(const LaneU32& digit, const LaneBool& inside) {
    using namespace dsl;
    const LaneU32 same = match_any(select(inside, digit, kDigits));
    const LaneU32 before = counter_of(digit).load() + popc(same & k_.lanes_below());
    k_.sync_warp();  // every lane has read before one writes
    k_.if_(inside & (same >> k_.lane() == 1), [&] { counter_of(digit).store(before + 1); });
    k_.sync_warp();
    return before;
  }

  SharedWords counters_;
};

using SuffixStretches = CtaStretches<kBwtSortThreads>;

inline auto bwt_segments(const BlockU32& raw_bytes) { return (raw_bytes + (kBwtSegmentBytes - 1)) / kBwtSegmentBytes; }

// The number of bytes by which suffixes are sorted at first. Bytes after the block's end count as zeros. Of suffixes
// that are then equal the shorter one is smaller; it comes first because the list begins with the last suffix and the
// sorts are stable.
inline constexpr dsl::u32 kFirstBytes = 4;

// The bits of the largest rank. As many rounds suffice to reach the end of a block, since the first sort covers four
// bytes.
inline BlockU32 bits_of_rank(const BlockU32& raw_bytes) { return 32 - dsl::clz(raw_bytes - dsl::min(raw_bytes, 1)); }

// The digit of a suffix in pass 0, 1, ... of the sort by first bytes.
inline LaneU32 first_bytes_digit(const StridedItem& item, const LaneU32& suffix, const BlockU32& pass) {
  const LaneU32 at = suffix + (kFirstBytes - 1 - pass);
  const LaneBool inside = at < item.src_size;
  return dsl::select(inside, dsl::zext<dsl::u32>(item.src.at(dsl::select(inside, at, 0)).load()), 0);
}

// Whether two suffixes differ in their first bytes, or one of them ends within these.
inline LaneBool first_bytes_differ(const StridedItem& item, const LaneU32& suffix, const LaneU32& before) {
  const auto words = item.src.as<dsl::u32>();
  const auto first_bytes = [&](const LaneU32& at) {
    return dsl::funnel_right(words.at(at / 4).load(), words.at((at + 3) / 4).load(), at * 8);
  };
  const LaneBool whole = dsl::max(suffix, before) + kFirstBytes <= item.src_size;
  return (!whole) | (first_bytes(dsl::select(whole, suffix, 0)) != first_bytes(dsl::select(whole, before, 0)));
}

// Ranks the elements of a sorted list. Equal elements form a group, and an element's rank is the index at which its
// group begins. Calls store_rank(i, element, rank) for each element and returns the number of groups. is_first(i,
// element, previous element) says whether a group begins at i; its result for i = 0 is ignored.
template <class Load, class IsFirst, class StoreRank>
WarpU32 rank_groups(dsl::Kernel& k, SuffixStretches& list, const WarpU32& count, const WarpBool& busy, const Load& load,
                    const IsFirst& is_first, const StoreRank& store_rank) {
  using namespace dsl;
  const auto first_lanes = [&](const LaneU32& i, const LaneBool& inside) {
    const LaneU32 before = load(select(i == 0, 0, i - 1));
    return ballot(inside & ((i == 0) | is_first(i, load(i), before)));
  };
  WarpVar groups(k, 0), last(k, 0);
  k.if_(busy, [&] {
    list.for_stretch(count, [&](const WarpU32& base, const LaneU32& i, const LaneBool& inside) {
      const WarpU32 first = first_lanes(i, inside);
      groups += popc(first);
      last = select(first != 0, base + (31 - clz(first)), *last);
    });
  });
  const auto totals = list.totals(*groups, *last);
  k.if_(busy, [&] {
    last = totals.last_before;
    list.for_stretch(count, [&](const WarpU32& base, const LaneU32& i, const LaneBool& inside) {
      const WarpU32 first = first_lanes(i, inside);
      const LaneU32 to_here = first & (k.lanes_below() << 1 | 1);
      k.if_(inside, [&] { store_rank(i, load(i), select(to_here != 0, base + (31 - clz(to_here)), *last)); });
      last = select(first != 0, base + (31 - clz(first)), *last);
    });
  });
  k.barrier();
  return totals.sum;
}

// Writes the BWT block of an item whose suffixes are in order. suffix_at(i) is the suffix at index i, and the whole
// block is the suffix at index `rank_of_block`.
template <class Stretches, class SuffixAt>
void write_bwt_block(const StridedItem& item, Stretches& list, const SuffixAt& suffix_at,
                     const WarpU32& rank_of_block) {
  using namespace dsl;
  Kernel& k = item.k;
  const BlockU32 n = item.src_size;
  const auto column = item.dst.at(times<4>(bwt_segments(n) + 1));
  k.once_per_block([&] {
    item.dst.as<u32>().store(n);
    k.if_(n != 0, [&] { column.store(item.src.at(n - 1).load()); });  // the byte of row 0
  });
  list.for_stretch(n, [&](const WarpU32& base, const LaneU32& i, const LaneBool& inside) {
    if (k.is_debug()) mark_warp(k, Mark::emit, base);
    const LaneU32 suffix = suffix_at(i);
    k.if_(inside & (suffix % kBwtSegmentBytes == 0),
          [&] { item.dst.as<u32>().at(suffix / kBwtSegmentBytes + 1).store(i + 1); });
    k.if_(inside & (suffix != 0),
          [&] { column.at(i + 1 - zext<u32>(i > rank_of_block)).store(item.src.at(suffix - 1).load()); });
  });
}

// Calls sort(item), which writes the block, if the item is within its limits. Returns the item's status and size.
template <class Item, class Sort>
CtaOutcome sort_within_limits(const Item& item, const BlockU32& max_bytes, const Sort& sort) {
  using namespace dsl;
  Kernel& k = item.k;
  const BlockU32 n = item.src_size;
  const BlockU32 block_bytes = (bwt_segments(n) + 1) * 4 + n;
  const Expr<bool, Rate::block> too_large = n > max_bytes, too_long = block_bytes > item.capacity;
  k.if_((!too_large) & (!too_long), [&] { sort(item); });
  const auto status = [&](StreamStatus value) { return status_value(k, value); };
  return {select(too_large, status(StreamStatus::item_too_large),
                 select(too_long, status(StreamStatus::output_overrun), status(StreamStatus::ok))),
          block_bytes};
}

}  // namespace ptxkit::kernels
