// The BWT by rank doubling with radix sorts: U. Manber, G. Myers, "Suffix Arrays", SIAM Journal on Computing 22(5),
// 1993.
//
// Once the suffixes are in order by their first h bytes and have ranks, the order by 2h bytes is that of the pairs
// (rank, rank of the suffix at distance h). The order by the second component is known: it is the present order,
// shifted by h. What remains is a stable sort by rank, eight bits in each pass.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/bwt/abi.hpp"
#include "kernels/bwt/bwt_item.hpp"
#include "kernels/bwt/bwt_sort.hpp"
#include "kernels/kernels.hpp"
#include "kernels/transform_abi.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

using SuffixSort = DigitSort<kBwtSortThreads>;

class RankDoubling {
  auto order() {
    return [this](const LaneU32& i) { return word(*order_ + i).load(); };
  }
  auto store_rank() {
    return [this](const LaneU32&, const LaneU32& suffix, const LaneU32& rank) {
      word(*other_ranks_ + suffix).store(rank);
    };
  }

 public:
  explicit RankDoubling(const BwtItem& item)
      : item_(item),
        k_(item.k),
        n_(item.src_size),
        list_(k_),
        order_(k_, 0),
        other_order_(k_, item.item_bytes),
        ranks_(k_, item.item_bytes * 2),
        other_ranks_(k_, item.item_bytes * 3) {}

  void sort() {
    sort_by_first_bytes();
    k_.range(k_.constant<u32>(0), bits_of_rank(n_), 1, [&](const BlockU32& round) {
      const BlockU32 distance = k_.constant(kFirstBytes) << round;
      const WarpBool busy = (*groups_) < n_;
      mark_block(k_, Mark::parse, distance);
      move_order(busy, distance);
      sort_by_rank(busy);
      rank_by_pairs(busy, distance);
    });
    WarpVar rank_of_block(k_, 0);
    k_.if_(n_ != 0, [&] { rank_of_block = shuffle(rank_of(k_.constant<u32>(0)), 0); });
    write_bwt_block(item_, list_, order(), *rank_of_block);
    move_home();
  }

 private:
  Ptr<global, u32, 4, Rate::thread> word(const LaneU32& at) { return item_.scratch.at(at); }
  LaneU32 rank_of(const LaneU32& suffix) { return word(*ranks_ + suffix).load(); }
  static void swap(WarpVar& a, WarpVar& b) {
    const WarpU32 was = *a;
    a = *b;
    b = was;
  }

  void sort_by_first_bytes() {
    const WarpBool busy = k_.constant<u32>(0) == 0;
    list_.for_stretch(n_, [&](const WarpU32&, const LaneU32& i, const LaneBool& inside) {
      k_.if_(inside, [&] { word(*order_ + i).store(n_ - 1 - i); });
    });
    k_.barrier();
    k_.range(k_.constant<u32>(0), kFirstBytes, 1, [&](const BlockU32& pass) {
      pass_by(busy, [&](const LaneU32& suffix) { return first_bytes_digit(item_, suffix, pass); });
    });
    const auto differ = [&](const LaneU32&, const LaneU32& suffix, const LaneU32& before) {
      return first_bytes_differ(item_, suffix, before);
    };
    groups_ = rank_groups(k_, list_, n_, busy, order(), differ, store_rank());
    swap(ranks_, other_ranks_);
  }

  template <class Digit>
  void pass_by(const WarpBool& busy, const Digit& digit) {
    list_.sort_by_digit(
        n_, n_, busy, [&](const LaneU32& i, const LaneBool&) { return order()(i); }, order(), digit,
        [&](const LaneU32&, const LaneU32& suffix, const LaneU32& position) {
          word(*other_order_ + position).store(suffix);
        });
    k_.if_(busy, [&] { swap(order_, other_order_); });
  }

  // Brings the suffixes into the order of the suffix at `distance`. Those for which it is past the end come first.
  void move_order(const WarpBool& busy, const BlockU32& distance) {
    const auto moved_lanes = [&](const LaneU32& i, const LaneBool& inside) {
      return ballot(inside & (word(*order_ + i).load() >= distance));
    };
    WarpVar moved(k_, 0);
    k_.if_(busy, [&] {
      list_.for_stretch(
          n_, [&](const WarpU32&, const LaneU32& i, const LaneBool& inside) { moved += popc(moved_lanes(i, inside)); });
    });
    const auto totals = list_.totals(*moved, k_.constant<u32>(0));
    const BlockU32 at_end = min(distance, n_);
    k_.if_(busy, [&] {
      moved = at_end + totals.sum_before;
      list_.for_stretch(n_, [&](const WarpU32&, const LaneU32& i, const LaneBool& inside) {
        k_.if_(inside & (i < at_end), [&] { word(*other_order_ + i).store(n_ - at_end + i); });
        const WarpU32 lanes = moved_lanes(i, inside);
        k_.if_((lanes >> k_.lane() & 1) != 0, [&] {
          word(*other_order_ + *moved + popc(lanes & k_.lanes_below())).store(word(*order_ + i).load() - distance);
        });
        moved += popc(lanes);
      });
      swap(order_, other_order_);
    });
    k_.barrier();
  }

  void sort_by_rank(const WarpBool& busy) {
    k_.range(k_.constant<u32>(0), bits_of_rank(n_), SuffixSort::kDigitBits, [&](const BlockU32& shift) {
      pass_by(busy, [&](const LaneU32& suffix) { return rank_of(suffix) >> shift & (SuffixSort::kDigits - 1); });
    });
  }

  void rank_by_pairs(const WarpBool& busy, const BlockU32& distance) {
    const auto second = [&](const LaneU32& suffix) {
      const LaneBool inside = distance < n_ - suffix;
      return select(inside, rank_of(select(inside, suffix + distance, 0)) + 1, 0);
    };
    const auto differ = [&](const LaneU32&, const LaneU32& suffix, const LaneU32& before) {
      return (rank_of(suffix) != rank_of(before)) | (second(suffix) != second(before));
    };
    const WarpU32 groups = rank_groups(k_, list_, n_, busy, order(), differ, store_rank());
    k_.if_(busy, [&] {
      groups_ = groups;
      swap(ranks_, other_ranks_);
    });
  }

  // Copies the order to the beginning of the scratch, where abi.hpp promises it.
  void move_home() {
    k_.if_(*order_ != 0, [&] {
      list_.for_stretch(n_, [&](const WarpU32&, const LaneU32& i, const LaneBool& inside) {
        k_.if_(inside, [&] { word(i).store(word(*order_ + i).load()); });
      });
    });
  }

  const BwtItem& item_;
  Kernel& k_;
  BlockU32 n_;
  SuffixSort list_;
  WarpVar order_, other_order_, ranks_, other_ranks_;  // offsets in the scratch
  WarpVar groups_{k_, 0};
};

}  // namespace

KernelDefinition bwt_radix() {
  return define_bwt(
      {.name = std::string(kBwtRadix),
       .block = kBwtSortThreads,
       .min_blocks = 2,
       .budget = {.registers = 64, .shared_bytes = SuffixSort::kSharedBytes},
       .cost = {.threads_per_element = double{kBwtSortThreads} / kTransformItemBytes,
                .buffers = strided_buffers({{"src", N}, {"dst", kBwtBlockRoom}, {"scratch", N * 16}}),
                .note = "one CTA an item, which is of 64 KiB here"}},
      [](const BlockU32& item_bytes) { return item_bytes * 2; },
      [](const BwtItem& item) {
        return sort_within_limits(item, min(item.item_bytes, kMaxBwtBytes),
                                  [](const BwtItem& within) { RankDoubling(within).sort(); });
      });
}

}  // namespace ptxkit::kernels
