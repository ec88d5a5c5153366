// The BWT by rank doubling that leaves out what is done: a suffix whose rank no other has is in its place, and only the
// others are sorted again, by the pairs of bwt_radix.cpp. (J. Larsson, K. Sadakane, "Faster Suffix Sorting",
// Theoretical Computer Science 387(3), 2007, with discarding as in R. Dementiev, J. Kärkkäinen, J. Mehnert, P. Sanders,
// "Better External Memory Suffix Array Construction", ACM JEA 12, 2008.)
//
// An element of the list of suffixes that are left has in one word what it is sorted by, so that all passes but the
// first of a round read the list from beginning to end and nothing else. The list is in order of ranks, and a sort
// exchanges elements within their groups only: the i-th of a group belongs into the row i behind the group's rank.
#include "kernels/bwt/bwt_sort.hpp"
#include "kernels/kernels.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;
using LaneU64 = Expr<u64, Rate::Thread>;

// Of an element: from bit 0 on the suffix, then the rank of the suffix a distance further on, then its own rank; before
// there are ranks, its first bytes behind the suffix.
constexpr u32 kPlaceBits = 20;
static_assert(kMaxBwtBytes == 1u << kPlaceBits && 3 * kPlaceBits <= 64 && kPlaceBits + 8 * kFirstBytes <= 64);

class DiscardingDoubling {
 public:
  explicit DiscardingDoubling(const BwtItem& item)
      : item_(item),
        k_(item.k),
        n_(item.src_size),
        elements_(item.scratch.as<u64>()),
        sort_(k_),
        left_(k_, n_),
        list_(k_, 0),
        other_list_(k_, item.item_bytes),
        ranks_(item.item_bytes * 4) {}

  void sort() {
    sort_by_first_bytes();
    k_.range(k_.constant<u32>(0), bits_of_rank(n_), 1, [&](const BlockU32& round) {
      const BlockU32 distance = k_.constant(kFirstBytes) << round;
      mark_block(k_, Mark::parse, distance);
      // A suffix that ends within the distance comes first, and it does: of one group it is the shortest, lists begin
      // with the last suffix, and sorts are stable. So that its key may be the smallest rank.
      const auto reaches = [&](const LaneU32& suffix) { return distance < n_ - suffix; };
      sort_by_pairs([&](const LaneU32& suffix) {
        const LaneBool inside = reaches(suffix);
        return select(inside, rank_of(select(inside, suffix + distance, 0)), 0);
      });
      discard(
          [&](const LaneU64& element, const LaneU64& before) {
            return (element >> kPlaceBits != before >> kPlaceBits) | (!reaches(suffix_of(before)));
          },
          rank_in);
    });
    write_order();
  }

 private:
  Ptr<Global, u32, 4, Rate::Thread> word(const LaneU32& at) { return item_.scratch.at(at); }
  LaneU32 rank_of(const LaneU32& suffix) { return word(ranks_ + suffix).load(); }
  LaneU64 element_at(const LaneU32& i) { return elements_.at(*list_ + i).load(); }
  static LaneU32 suffix_of(const LaneU64& element) { return trunc<u32>(element) & (kMaxBwtBytes - 1); }
  static LaneU32 rank_in(const LaneU64& element) { return trunc<u32>(element >> (2 * kPlaceBits)); }
  WarpBool busy() { return *left_ != 0; }

  void sort_by_first_bytes() {
    sort_.for_stretch(n_, [&](const WarpU32&, const LaneU32& i, const LaneBool& inside) {
      const LaneU32 suffix = n_ - 1 - i;
      LaneVar bytes(k_, 0);
      unrolled<kFirstBytes>([&](auto byte) {
        const LaneU32 at = suffix + byte;
        const LaneBool there = inside & (at < n_);
        bytes = *bytes << 8 | select(there, zext<u32>(item_.src.at(select(there, at, 0)).load()), 0);
      });
      k_.if_(inside, [&] { elements_.at(i).store(zext<u64>(*bytes) << kPlaceBits | zext<u64>(suffix)); });
    });
    k_.barrier();
    const auto first_bytes = [](const LaneU64& element) { return trunc<u32>(element >> kPlaceBits); };
    k_.range(k_.constant<u32>(0), 8 * kFirstBytes, SuffixSort::kDigitBits, [&](const BlockU32& shift) {
      pass_by([&](const LaneU32& i, const LaneBool&) { return element_at(i); },
              [&](const LaneU64& element) { return first_bytes(element) >> shift; });
    });
    discard(
        [&](const LaneU64& element, const LaneU64& before) {
          const LaneBool whole = max(suffix_of(element), suffix_of(before)) + kFirstBytes <= n_;
          return (!whole) | (first_bytes(element) != first_bytes(before));
        },
        [&](const LaneU64&) { return LaneU32(k_.constant<u32>(0)); });
  }

  // second(suffix) -> what those of one rank are sorted by.
  template <class Second>
  void sort_by_pairs(const Second& second) {
    const auto with_second = [&](const LaneU32& i, const LaneBool& inside) {
      const LaneU64 element = element_at(i);
      const LaneU64 complete = element | zext<u64>(second(suffix_of(element))) << kPlaceBits;
      k_.sync_warp();  // lanes that are not inside have read what another one writes
      k_.if_(inside, [&] { elements_.at(*list_ + i).store(complete); });
      return complete;
    };
    // The last digit may have bits of the rank in it, by which the list is sorted next.
    const auto second_digits = [](const BlockU32& shift) {
      return [shift](const LaneU64& element) { return trunc<u32>(element >> kPlaceBits) >> shift; };
    };
    pass_by(with_second, second_digits(k_.constant<u32>(0)));
    const auto as_it_is = [&](const LaneU32& i, const LaneBool&) { return element_at(i); };
    k_.range(k_.constant(SuffixSort::kDigitBits), bits_of_rank(n_), SuffixSort::kDigitBits,
             [&](const BlockU32& shift) { pass_by(as_it_is, second_digits(shift)); });
    k_.range(k_.constant<u32>(0), bits_of_rank(n_), SuffixSort::kDigitBits, [&](const BlockU32& shift) {
      pass_by(as_it_is, [&](const LaneU64& element) { return rank_in(element) >> shift; });
    });
  }
  template <class FirstLoad, class Digit>
  void pass_by(const FirstLoad& first_load, const Digit& digit) {
    sort_.sort_by_digit(
        n_, *left_, busy(), first_load, [&](const LaneU32& i) { return element_at(i); },
        [&](const LaneU64& element) { return digit(element) & (SuffixSort::kDigits - 1); },
        [&](const LaneU32&, const LaneU64& element, const LaneU32& position) {
          elements_.at(*other_list_ + position).store(element);
        });
    swap_lists();
  }
  void swap_lists() {
    const WarpU32 was = *list_;
    list_ = *other_list_;
    other_list_ = was;
  }

  // Gives what is left its new ranks, and goes on with those that have one in common. differ(element, the one before):
  // whether a group begins; old_rank(element).
  template <class Differ, class OldRank>
  void discard(const Differ& differ, const OldRank& old_rank) {
    // Where groups begin, and which elements are not alone in theirs.
    struct Lanes {
      WarpU32 first, old_first, shared;
    };
    const auto lanes_of = [&](const LaneU64& element, const LaneU32& i, const LaneBool& inside) {
      const LaneU64 before = element_at(max(i, 1) - 1);
      const LaneBool has_next = i + 1 < *left_;
      const LaneU64 next = element_at(select(has_next, i + 1, i));
      const LaneBool first = (i == 0) | differ(element, before);
      const LaneBool alone = first & ((!has_next) | differ(next, element));
      return Lanes{ballot(inside & first), ballot(inside & ((i == 0) | (old_rank(element) != old_rank(before)))),
                   ballot(inside & !alone)};
    };
    const auto last_of = [](const WarpU32& lanes, const WarpU32& base, const WarpU32& otherwise) {
      return select(lanes != 0, base + (31 - clz(lanes)), otherwise);
    };
    WarpVar kept(k_, 0), first(k_, 0), old_first(k_, 0);
    k_.if_(busy(), [&] {
      sort_.for_stretch(*left_, [&](const WarpU32& base, const LaneU32& i, const LaneBool& inside) {
        const Lanes lanes = lanes_of(element_at(i), i, inside);
        first = last_of(lanes.first, base, *first);
        old_first = last_of(lanes.old_first, base, *old_first);
        kept += popc(lanes.shared);
      });
    });
    const auto totals = sort_.totals(*kept, *first);
    const auto old_totals = sort_.totals(k_.constant<u32>(0), *old_first);
    k_.if_(busy(), [&] {
      kept = totals.sum_before;
      first = totals.last_before;
      old_first = old_totals.last_before;
      sort_.for_stretch(*left_, [&](const WarpU32& base, const LaneU32& i, const LaneBool& inside) {
        const LaneU64 element = element_at(i);
        const Lanes lanes = lanes_of(element, i, inside);
        const LaneU32 to_here = k_.lanes_below() << 1 | 1;
        const auto begin_of = [&](const WarpU32& firsts, const WarpU32& otherwise) {
          const LaneU32 here = firsts & to_here;
          return select(here != 0, base + (31 - clz(here)), otherwise);
        };
        const LaneU32 suffix = suffix_of(element);
        const LaneU32 rank = old_rank(element) + begin_of(lanes.first, *first) - begin_of(lanes.old_first, *old_first);
        k_.if_(inside, [&] { word(ranks_ + suffix).store(rank); });
        k_.if_((lanes.shared >> k_.lane() & 1) != 0, [&] {
          elements_.at(*other_list_ + *kept + popc(lanes.shared & k_.lanes_below()))
              .store(zext<u64>(rank) << (2 * kPlaceBits) | zext<u64>(suffix));
        });
        first = last_of(lanes.first, base, *first);
        old_first = last_of(lanes.old_first, base, *old_first);
        kept += popc(lanes.shared);
      });
    });
    swap_lists();
    k_.barrier();
    left_ = totals.sum;
  }

  // A suffix stands in the row of its rank. The order goes to the beginning of the scratch, where a caller finds it.
  void write_order() {
    sort_.for_stretch(n_, [&](const WarpU32&, const LaneU32& i, const LaneBool& inside) {
      k_.if_(inside, [&] { word(rank_of(i)).store(i); });
    });
    k_.barrier();
    WarpVar rank_of_block(k_, 0);
    k_.if_(n_ != 0, [&] { rank_of_block = shuffle(rank_of(k_.constant<u32>(0)), 0); });
    write_bwt_block(item_, sort_, [&](const LaneU32& i) { return word(i).load(); }, *rank_of_block);
  }

  const BwtItem& item_;
  Kernel& k_;
  BlockU32 n_;
  Ptr<Global, u64> elements_;
  SuffixSort sort_;
  WarpVar left_;               // suffixes that share their rank
  WarpVar list_, other_list_;  // where these begin among the elements
  BlockU32 ranks_;             // where they begin in the scratch
};

}  // namespace

KernelDefinition bwt_rank() {
  return define_bwt(
      {.name = std::string(kBwtRank),
       .block = kBwtSortThreads,
       .min_blocks = 3,
       .budget = {.registers = 64, .shared_bytes = SuffixSort::kSharedBytes},
       .cost = {.threads_per_element = double{kBwtSortThreads} / kTransformItemBytes,
                .buffers = strided_buffers({{"src", N}, {"dst", N + 16}, {"dst_rows", N / 1024}, {"scratch", N * 20}},
                                           kTransformItemBytes),
                .note = "one CTA an item, which is of 64 KiB here"}},
      [](const BlockU32& item_bytes) { return (item_bytes * 5 + 1) / 2; },
      [](const BwtItem& item) {
        return sort_within_limits(item, min(item.item_bytes, kMaxBwtBytes),
                                  [](const BwtItem& within) { DiscardingDoubling(within).sort(); });
      });
}

}  // namespace ptxkit::kernels
