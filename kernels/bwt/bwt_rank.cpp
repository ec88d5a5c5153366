// The BWT by rank doubling with discarding: a suffix with a unique rank is in its final place, and only the others are
// sorted again, by the pairs of bwt_radix.cpp. (J. Larsson, K. Sadakane, "Faster Suffix Sorting", Theoretical Computer
// Science 387(3), 2007, with discarding as in R. Dementiev, J. Kärkkäinen, J. Mehnert, P. Sanders, "Better External
// Memory Suffix Array Construction", ACM JEA 12, 2008.)
//
// Suffixes that share a rank are a group. The members of a group are adjacent in one of two lists. Short groups, with
// at most as many members as a warp has lanes, are sorted by a warp in registers, as many groups at once as fit. Long
// groups are sorted by the CTA with radix passes, and so are all suffixes at first, by their first bytes. An element is
// one word that contains its sort keys, so that every pass but the first of a round reads a list sequentially and
// nothing else.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/bwt/abi.hpp"
#include "kernels/bwt/bwt_item.hpp"
#include "kernels/bwt/bwt_sort.hpp"
#include "kernels/kernels.hpp"
#include "kernels/transform.hpp"
#include "kernels/transform_abi.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;
using LaneU64 = Expr<u64, Rate::thread>;
using SuffixSort = DigitSort<kBwtRankThreads>;

// The number of bytes by which suffixes are sorted at first. A pass for each costs less than the rounds that it saves.
constexpr u32 kLeadBytes = 5;
static_assert(kLeadBytes % 2 == 1, "the last pass leaves its list where sorted ones are");

// The fields of an element, from bit 0 on: the suffix, the rank of the suffix at the present distance, its own rank.
// Before there are ranks, the suffix's first bytes follow the suffix.
constexpr u32 kPlaceBits = 20;
static_assert(kMaxBwtBytes == 1u << kPlaceBits && 3 * kPlaceBits <= 64 && kPlaceBits + 8 * kLeadBytes <= 64);

// A key that a warp sorts in registers: the number of the group in the warp, the second rank, the lane.
constexpr u32 kLaneBits = 5;
static_assert(1u << kLaneBits == kWarpLanes && kLaneBits + kPlaceBits + kLaneBits < 32);

// Flags of an element of a short group after sorting: another element has the same rank; the rank has changed.
constexpr u32 kIsShared = 1, kIsNew = 2;

class DiscardingDoubling {
  static LaneU32 suffix_of(const LaneU64& element) { return trunc<u32>(element) & (kMaxBwtBytes - 1); }
  static LaneU32 rank_in(const LaneU64& element) { return trunc<u32>(element >> (2 * kPlaceBits)); }
  static LaneU64 element_of(const LaneU32& rank, const LaneU32& suffix) {
    return zext<u64>(rank) << (2 * kPlaceBits) | zext<u64>(suffix);
  }

 public:
  explicit DiscardingDoubling(const BwtItem& item)
      : item_(item),
        k_(item.k),
        n_(item.src_size),
        elements_(item.scratch.at(times<2>((item.item_bytes + 1) / 2)).as<u64>()),
        sort_(k_),
        short_left_(k_, 0),
        long_left_(k_, 0),
        short_begin_(k_, 0),
        short_end_(k_, 0),
        short_kept_(k_, 0),
        from_(k_, 0),
        to_(k_, item.item_bytes),
        ranks_((item.item_bytes + 1) / 2 * 2 + item.item_bytes * 4),
        ranks_are_short_(item.src_size <= 1u << 16) {}

  void sort() {
    sort_by_first_bytes();
    k_.range(k_.constant<u32>(0), bits_of_rank(n_), 1, [&](const BlockU32& round) {
      const BlockU32 distance = k_.constant(kLeadBytes) << round;
      mark_block(k_, Mark::parse, distance);
      // A suffix that ends within the distance must come first in its group. It does even if its key is only the
      // smallest rank: it is the shortest of its group, lists begin with the last suffix, and the sorts are stable.
      const auto reaches = [&](const LaneU32& suffix) { return distance < n_ - suffix; };
      const auto second = [&](const LaneU32& suffix) {
        const LaneBool inside = reaches(suffix);
        return select(inside, rank_of(select(inside, suffix + distance, 0)), 0);
      };
      sort_short_groups(second, reaches);
      sort_long_groups(second);
      settle(
          [&](const LaneU64& element, const LaneU64& before) {
            return ((element >> kPlaceBits) != (before >> kPlaceBits)) | (!reaches(suffix_of(before)));
          },
          rank_in, false);
    });
    write_block();
  }

 private:
  // The suffix of a row, in the part of the scratch that abi.hpp promises to the caller.
  Ptr<global, u32, 4, Rate::thread> order(const LaneU32& row) { return item_.scratch.at(row); }
  // The rank of a suffix. Ranks of a block of at most 64 KiB are stored in two bytes, so that those of all active
  // blocks fit L2.
  LaneU32 rank_of(const LaneU32& suffix) {
    LaneVar rank(k_, 0);
    k_.if_(ranks_are_short_, [&] { rank = zext<u32>(short_rank(suffix).load()); }).else_([&] {
      rank = item_.scratch.at(ranks_ + suffix).load();
    });
    return *rank;
  }
  void set_rank(const LaneU32& suffix, const LaneU32& rank) {
    k_.if_(ranks_are_short_, [&] { short_rank(suffix).store(trunc<u16>(rank)); }).else_([&] {
      item_.scratch.at(ranks_ + suffix).store(rank);
    });
  }
  Ptr<global, u16, 2, Rate::thread> short_rank(const LaneU32& suffix) {
    return item_.scratch.at(ranks_).as<u16>().at(suffix);
  }

  // Between the steps both lists are in the first of two rooms of item_bytes elements each: short groups at its
  // beginning, long groups at its end, up to element n. Sorted lists are in the second room.
  Ptr<global, u64, 8, Rate::thread> at_rest(const LaneU32& i) { return elements_.at(i); }
  Ptr<global, u64, 8, Rate::thread> sorted(const LaneU32& i) { return elements_.at(item_.item_bytes + i); }
  WarpU32 long_at() { return n_ - *long_left_; }

  void sort_by_first_bytes() {
    const WarpBool busy = k_.constant<u32>(0) == 0;
    const auto byte_at = [&](const LaneU32& at) { return zext<u32>(item_.src.at(at).load()); };
    const LaneU32 of_text = sort_.count_digits(n_, busy, [&](const LaneU32& i, const LaneBool&) { return byte_at(i); });
    // The counts of the bytes at distance `ahead` from each suffix's beginning: those of the whole block without its
    // first bytes, plus zeros for the positions after its end.
    const auto found = [&](const BlockU32& ahead) {
      const BlockU32 missing = min(ahead, n_);
      LaneVar count(k_, of_text + select(k_.thread() == 0, missing, 0));
      unrolled<kLeadBytes - 1>([&](auto i) {
        k_.if_(k_.constant(u32{i}) < missing, [&] { count -= zext<u32>(byte_at(k_.constant(u32{i})) == k_.thread()); });
      });
      return LaneU32(*count);
    };
    const auto pass = [&](const BlockU32& number, const auto& load) {
      sort_.place_by_digit(
          n_, n_, busy, found(kLeadBytes - 1 - number), load,
          [&](const LaneU64& element) {
            return trunc<u32>(element >> zext<u64>(number * SuffixSort::kDigitBits + kPlaceBits)) &
                   (SuffixSort::kDigits - 1);
          },
          [&](const LaneU32&, const LaneU64& element, const LaneU32& position) {
            elements_.at(*to_ + position).store(element);
          });
      swap_rooms();
    };
    pass(k_.constant<u32>(0), [&](const LaneU32& i) {
      const LaneU32 suffix = n_ - 1 - i;
      return first_bytes(suffix) << kPlaceBits | zext<u64>(suffix);
    });
    k_.range(k_.constant<u32>(1), kLeadBytes, 1, [&](const BlockU32& number) {
      pass(number, [&](const LaneU32& i) { return LaneU64(elements_.at(*from_ + i).load()); });
    });
    long_left_ = n_;
    settle(
        [&](const LaneU64& element, const LaneU64& before) {
          const LaneBool whole = max(suffix_of(element), suffix_of(before)) + kLeadBytes <= n_;
          return (!whole) | ((element >> kPlaceBits) != (before >> kPlaceBits));
        },
        [&](const LaneU64&) { return LaneU32(k_.constant<u32>(0)); }, true);
  }
  // The first kLeadBytes bytes of a suffix, the first one on top. Bytes after the block's end are zeros.
  LaneU64 first_bytes(const LaneU32& suffix) {
    static_assert(kLeadBytes == 5, "two words have them");
    const auto word_of = [&](const LaneU32& at) {
      return zext<u64>(item_.src.as<u32>().at(min(at, n_ - 1) / 4).load());
    };
    const LaneU64 bytes = (word_of(suffix + 4) << 32 | word_of(suffix)) >> zext<u64>(suffix % 4 * 8);
    const LaneU64 on_top = zext<u64>(prmt(trunc<u32>(bytes), 0, 0x0123)) << 8 | (bytes >> 32 & 0xFF);
    const LaneU32 missing = kLeadBytes - min(n_ - suffix, kLeadBytes);
    return on_top & (~k_.constant<u64>(0) << zext<u64>(missing * 8));
  }

  // Sorts the short groups. second(suffix) is the key within a group. The sorted elements have new ranks, and flags in
  // the place of the second rank.
  template <class Second, class Reaches>
  void sort_short_groups(const Second& second, const Reaches& reaches) {
    short_kept_ = 0;
    k_.if_(*short_left_ != 0, [&] {
      // A warp takes the groups that begin in its stretch.
      const auto first_group_from = [&](const WarpU32& at) {
        const LaneU32 i = at + k_.lane();
        const LaneBool past = i >= *short_left_;
        const auto its_rank = [&](const LaneU32& j) { return rank_in(at_rest(select(past, 0, j)).load()); };
        return min(at + ctz(ballot(past | (i == 0) | (its_rank(i) != its_rank(max(i, 1) - 1)))), *short_left_);
      };
      short_begin_ = first_group_from(sort_.stretch_begin(*short_left_, k_.warp()));
      short_end_ = first_group_from(sort_.stretch_begin(*short_left_, k_.warp() + 1));
      WarpVar at(k_, *short_begin_);
      k_.warp_loop([&](auto& groups) {
        groups.break_if(*at >= *short_end_);
        at += sort_groups_at(*at, min(*short_end_ - *at, kWarpLanes), second, reaches);
      });
    });
  }

  // Sorts those of the `count` elements from `at` on, where a group begins, that are in complete groups, and returns
  // their number. If `count` is below a warp's lanes, these are the last elements, and all groups are complete.
  template <class Second, class Reaches>
  WarpU32 sort_groups_at(const WarpU32& at, const WarpU32& count, const Second& second, const Reaches& reaches) {
    const LaneU32 lane = k_.lane();
    const LaneU64 element = at_rest(at + select(lane < count, lane, 0)).load();
    const LaneU32 suffix = suffix_of(element), rank = rank_in(element);
    const WarpU32 begins = ballot((lane == 0) | (rank != shuffle_up(rank, 1)));
    const WarpU32 last = 31 - clz(begins);
    const WarpU32 taken = select((count < kWarpLanes) | (last == 0), count, last);
    const LaneBool mine = lane < taken;
    const LaneU32 to_here = k_.lanes_below() << 1 | 1;
    const LaneU32 group = popc(begins & to_here) - 1;
    LaneVar key(k_, k_.constant(u32{1}) << (2 * kLaneBits + kPlaceBits) | lane);
    k_.if_(mine, [&] { key = group << (kPlaceBits + kLaneBits) | second(suffix) << kLaneBits | lane; });
    sort_lanes(key);
    const LaneU32 origin = *key & (kWarpLanes - 1), by = *key >> kLaneBits;
    const LaneU32 its_suffix = shuffle(suffix, origin), its_rank = shuffle(rank, origin);
    const LaneBool differs = (by != shuffle_up(by, 1)) | (!reaches(shuffle_up(its_suffix, 1)));
    const WarpU32 firsts = ballot(mine & ((lane == 0) | differs));
    const LaneBool has_next = lane + 1 < taken;
    const LaneBool alone =
        ((firsts >> lane & 1) != 0) & ((!has_next) | ((firsts >> select(has_next, lane + 1, 0) & 1) != 0));
    const auto begin_of = [&](const WarpU32& lanes) { return 31 - clz(lanes & to_here); };
    const LaneU32 new_rank = its_rank + begin_of(firsts) - begin_of(begins);
    const LaneU32 flags =
        select(alone, 0, k_.constant(kIsShared)) | select(new_rank != its_rank, k_.constant(kIsNew), 0);
    k_.if_(mine, [&] { sorted(at + lane).store(element_of(new_rank, its_suffix) | zext<u64>(flags) << kPlaceBits); });
    k_.if_(mine & alone, [&] { order(new_rank).store(its_suffix); });
    short_kept_ += popc(ballot(mine & !alone));
    return taken;
  }
  // Sorts the lanes' keys with a bitonic network.
  void sort_lanes(LaneVar& key) {
    for (u32 run = 1; run <= kLaneBits; ++run) {
      for (u32 step = run; step-- != 0;) {
        const LaneU32 other = shuffle_xor(*key, 1u << step);
        const LaneBool is_lower = ((k_.lane() >> k_.constant(step) ^ k_.lane() >> k_.constant(run)) & 1) == 0;
        key = select((*key < other) == is_lower, *key, other);
      }
    }
  }

  template <class Second>
  void sort_long_groups(const Second& second) {
    const auto with_second = [&](const LaneU32& i, const LaneBool& inside) {
      const LaneU64 element = at_rest(long_at() + i).load();
      const LaneU64 complete = element | zext<u64>(second(suffix_of(element))) << kPlaceBits;
      k_.if_(inside, [&] { sorted(long_at() + i).store(complete); });
      return complete;
    };
    const auto element_at = [&](const LaneU32& i) { return LaneU64(elements_.at(*from_ + (long_at() + i)).load()); };
    const auto as_it_is = [&](const LaneU32& i, const LaneBool&) { return element_at(i); };
    const auto pass_by = [&](const auto& first_load, const auto& digit) {
      sort_.sort_by_digit(
          n_, *long_left_, *long_left_ != 0, first_load, element_at,
          [&](const LaneU64& element) { return digit(element) & (SuffixSort::kDigits - 1); },
          [&](const LaneU32&, const LaneU64& element, const LaneU32& position) {
            elements_.at(*to_ + (long_at() + position)).store(element);
          });
      swap_rooms();
    };
    // The last digit may contain low bits of the rank. That is harmless, since the list is sorted by rank next.
    const auto second_digits = [](const BlockU32& shift) {
      return [shift](const LaneU64& element) { return trunc<u32>(element >> kPlaceBits) >> shift; };
    };
    pass_by(with_second, second_digits(k_.constant<u32>(0)));
    k_.range(k_.constant(SuffixSort::kDigitBits), bits_of_rank(n_), SuffixSort::kDigitBits,
             [&](const BlockU32& shift) { pass_by(as_it_is, second_digits(shift)); });
    // As many passes as before, so that the list ends in the same room.
    k_.range(k_.constant<u32>(0), bits_of_rank(n_), SuffixSort::kDigitBits, [&](const BlockU32& shift) {
      pass_by(as_it_is, [&](const LaneU64& element) { return rank_in(element) >> shift; });
    });
  }
  void swap_rooms() {
    const WarpU32 was = *from_;
    from_ = *to_;
    to_ = was;
  }

  // Gives the suffixes of both lists their new ranks, and keeps those that share one. For the long groups,
  // differ(element, previous element) says whether a group begins, and old_rank(element) is the present rank, 0 if
  // these are the first ranks.
  template <class Differ, class OldRank>
  void settle(const Differ& differ, const OldRank& old_rank, bool are_first) {
    const auto element_at = [&](const LaneU32& i) { return LaneU64(sorted(long_at() + i).load()); };
    const auto is_first = [&](const LaneU32& i) { return (i == 0) | differ(element_at(i), element_at(max(i, 1) - 1)); };
    const auto begin_of = [&](const WarpU32& firsts, const WarpU32& base, const WarpU32& otherwise) {
      const LaneU32 here = firsts & (k_.lanes_below() << 1 | 1);
      return select(here != 0, base + (31 - clz(here)), otherwise);
    };
    // Masks of lanes: where groups begin, where groups of the old ranks begin, which elements are alone in their group,
    // and which of the others are in a short or a long group. `group` is the beginning of the group of the element
    // before `base`, or base - kWarpLanes if that is larger.
    struct Lanes {
      WarpU32 first, old_first, alone, in_short, in_long;
    };
    const auto lanes_of = [&](const LaneU64& element, const WarpU32& base, const LaneU32& i, const LaneBool& inside,
                              const WarpU32& group) {
      const LaneU64 before = element_at(max(i, 1) - 1);
      const LaneBool has_next = i + 1 < *long_left_;
      const LaneBool first = (i == 0) | differ(element, before);
      const LaneBool alone = first & ((!has_next) | differ(element_at(select(has_next, i + 1, i)), element));
      const WarpU32 firsts = ballot(inside & first);
      const LaneU32 far = begin_of(firsts, base, group) + kWarpLanes;
      const LaneBool is_long =
          (far < *long_left_) & (element_at(select(far < *long_left_, far, i)) >> kPlaceBits == element >> kPlaceBits);
      return Lanes{firsts, ballot(inside & ((i == 0) | (old_rank(element) != old_rank(before)))),
                   ballot(inside & alone), ballot(inside & (!alone) & !is_long), ballot(inside & (!alone) & is_long)};
    };
    const auto last_of = [](const WarpU32& lanes, const WarpU32& base, const WarpU32& otherwise) {
      return select(lanes != 0, base + (31 - clz(lanes)), otherwise);
    };
    WarpVar in_short(k_, 0), in_long(k_, 0), first(k_, 0), old_first(k_, 0);
    const WarpU32 begin = sort_.stretch_begin(*long_left_, k_.warp());
    k_.if_(begin < *long_left_, [&] {
      const WarpU32 firsts_before = ballot(is_first(begin - min(k_.lane(), begin)));
      WarpVar group(k_, begin - min(select(firsts_before != 0, ctz(firsts_before), kWarpLanes), begin));
      sort_.for_stretch(*long_left_, [&](const WarpU32& base, const LaneU32& i, const LaneBool& inside) {
        const Lanes lanes = lanes_of(element_at(i), base, i, inside, *group);
        first = last_of(lanes.first, base, *first);
        group = last_of(lanes.first, base, *group);
        old_first = last_of(lanes.old_first, base, *old_first);
        in_short += popc(lanes.in_short);
        in_long += popc(lanes.in_long);
      });
    });
    const auto kept = sort_.totals(*short_kept_, *first);
    const auto shorts = sort_.totals(*in_short, *old_first);
    const auto longs = sort_.totals(*in_long, k_.constant<u32>(0));
    settle_short(kept.sum_before);
    in_short = kept.sum + shorts.sum_before;
    in_long = n_ - longs.sum + longs.sum_before;
    first = kept.last_before;
    old_first = shorts.last_before;
    sort_.for_stretch(*long_left_, [&](const WarpU32& base, const LaneU32& i, const LaneBool& inside) {
      const LaneU64 element = element_at(i);
      const Lanes lanes = lanes_of(element, base, i, inside, *first);
      const LaneU32 suffix = suffix_of(element);
      const LaneU32 rank =
          old_rank(element) + begin_of(lanes.first, base, *first) - begin_of(lanes.old_first, base, *old_first);
      const LaneBool changes = are_first ? inside : inside & (rank != old_rank(element));
      k_.if_(changes, [&] { set_rank(suffix, rank); });
      k_.if_((lanes.alone >> k_.lane() & 1) != 0, [&] { order(rank).store(suffix); });
      const auto keep = [&](const WarpU32& kept_lanes, WarpVar& next) {
        k_.if_((kept_lanes >> k_.lane() & 1) != 0,
               [&] { at_rest(*next + popc(kept_lanes & k_.lanes_below())).store(element_of(rank, suffix)); });
        next += popc(kept_lanes);
      };
      keep(lanes.in_short, in_short);
      keep(lanes.in_long, in_long);
      first = last_of(lanes.first, base, *first);
      old_first = last_of(lanes.old_first, base, *old_first);
    });
    k_.barrier();
    short_left_ = kept.sum + shorts.sum;
    long_left_ = longs.sum;
  }

  // Does the same for the warp's short groups. The first element that is kept goes to place `next`.
  void settle_short(const WarpU32& first_kept) {
    WarpVar next(k_, first_kept);
    sort_.for_each_between(*short_begin_, *short_end_, [&](const WarpU32&, const LaneU32& i, const LaneBool& inside) {
      const LaneU64 element = sorted(i).load();
      const LaneU32 suffix = suffix_of(element), rank = rank_in(element);
      const LaneU32 flags = trunc<u32>(element) >> kPlaceBits;
      const WarpU32 kept = ballot(inside & ((flags & kIsShared) != 0));
      k_.if_(inside & ((flags & kIsNew) != 0), [&] { set_rank(suffix, rank); });
      k_.if_((kept >> k_.lane() & 1) != 0,
             [&] { at_rest(*next + popc(kept & k_.lanes_below())).store(element_of(rank, suffix)); });
      next += popc(kept);
    });
    short_begin_ = 0;
    short_end_ = 0;
  }

  void write_block() {
    WarpVar rank_of_block(k_, 0);
    k_.if_(n_ != 0, [&] { rank_of_block = shuffle(rank_of(k_.constant<u32>(0)), 0); });
    write_bwt_block(item_, sort_, [&](const LaneU32& i) { return order(i).load(); }, *rank_of_block);
  }

  const BwtItem& item_;
  Kernel& k_;
  BlockU32 n_;
  Ptr<global, u64> elements_;
  SuffixSort sort_;
  WarpVar short_left_, long_left_;  // suffixes that share their rank, in short and in long groups
  // the warp's part of the short groups, and how many of its elements remain
  WarpVar short_begin_, short_end_, short_kept_;
  WarpVar from_, to_;  // offsets, in elements, of the rooms that a pass reads and writes
  BlockU32 ranks_;     // offset of the ranks in the scratch
  Expr<bool, Rate::block> ranks_are_short_;
};

}  // namespace

KernelDefinition bwt_rank() {
  return define_bwt(
      {.name = std::string(kBwtRank),
       .block = kBwtRankThreads,
       .min_blocks = 1,
       .budget = {.registers = 64, .shared_bytes = SuffixSort::kSharedBytes},
       .cost = {.threads_per_element = double{kBwtRankThreads} / kTransformItemBytes,
                .buffers = strided_buffers({{"src", N}, {"dst", kBwtBlockRoom}, {"scratch", N * 24}}),
                .note = "one CTA an item, which is of 64 KiB here"}},
      [](const BlockU32& item_bytes) { return (item_bytes + 1) / 2 + (item_bytes * 5 + 1) / 2; },
      [](const BwtItem& item) {
        return sort_within_limits(item, min(item.item_bytes, kMaxBwtBytes),
                                  [](const BwtItem& within) { DiscardingDoubling(within).sort(); });
      });
}

}  // namespace ptxkit::kernels
