// The BWT by rank doubling that leaves out what is done: a suffix whose rank no other has is in its place, and only the
// others are sorted again, by the pairs of bwt_radix.cpp. (J. Larsson, K. Sadakane, "Faster Suffix Sorting",
// Theoretical Computer Science 387(3), 2007, with discarding as in R. Dementiev, J. Kärkkäinen, J. Mehnert, P. Sanders,
// "Better External Memory Suffix Array Construction", ACM JEA 12, 2008.)
//
// The list of suffixes that are left is in order of their ranks, and beside it stands the row of each. A sort exchanges
// suffixes within their groups only, so the rows stay as they are.
#include "kernels/bwt/bwt_sort.hpp"
#include "kernels/kernels.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

class DiscardingDoubling {
 public:
  explicit DiscardingDoubling(const BwtItem& item)
      : item_(item),
        k_(item.k),
        n_(item.src_size),
        sort_(k_),
        left_(k_, n_),
        suffixes_(k_, 0),
        other_suffixes_(k_, item.item_bytes),
        rows_(k_, item.item_bytes * 2),
        other_rows_(k_, item.item_bytes * 3),
        ranks_(item.item_bytes * 4),
        new_ranks_(item.item_bytes * 5) {}

  void sort() {
    sort_by_first_bytes();
    k_.range(k_.constant<u32>(0), bits_of_rank(n_), 1, [&](const BlockU32& round) {
      const BlockU32 distance = k_.constant(kFirstBytes) << round;
      mark_block(k_, Mark::parse, distance);
      // A suffix that ends within the distance comes first, and it does: of one group it is the shortest, lists begin
      // with the last suffix, and sorts are stable. So that its key may be the smallest rank.
      const auto reaches = [&](const LaneU32& suffix) { return distance < n_ - suffix; };
      const auto second = [&](const LaneU32& suffix) {
        const LaneBool inside = reaches(suffix);
        return select(inside, rank_of(select(inside, suffix + distance, 0)), 0);
      };
      sort_by(second);
      sort_by([&](const LaneU32& suffix) { return rank_of(suffix); });
      discard([&](const LaneU32& suffix, const LaneU32& before) {
        return (rank_of(suffix) != rank_of(before)) | (second(suffix) != second(before)) | (!reaches(before));
      });
    });
    write_order();
  }

 private:
  Ptr<Global, u32, 4, Rate::Thread> word(const LaneU32& at) { return item_.scratch.at(at); }
  LaneU32 rank_of(const LaneU32& suffix) { return word(ranks_ + suffix).load(); }
  LaneU32 suffix_at(const LaneU32& i) { return word(*suffixes_ + i).load(); }
  WarpBool busy() { return *left_ != 0; }
  static void swap(WarpVar& a, WarpVar& b) {
    const WarpU32 was = *a;
    a = *b;
    b = was;
  }

  void sort_by_first_bytes() {
    sort_.for_stretch(n_, [&](const WarpU32&, const LaneU32& i, const LaneBool& inside) {
      k_.if_(inside, [&] {
        word(*suffixes_ + i).store(n_ - 1 - i);
        word(*rows_ + i).store(i);
      });
    });
    k_.barrier();
    k_.range(k_.constant<u32>(0), kFirstBytes, 1, [&](const BlockU32& pass) {
      pass_by([&](const LaneU32& suffix) { return first_bytes_digit(item_, suffix, pass); });
    });
    discard([&](const LaneU32& suffix, const LaneU32& before) { return first_bytes_differ(item_, suffix, before); });
  }

  template <class Key>
  void sort_by(const Key& key) {
    k_.range(k_.constant<u32>(0), bits_of_rank(n_), SuffixSort::kDigitBits, [&](const BlockU32& shift) {
      pass_by([&](const LaneU32& suffix) { return key(suffix) >> shift & (SuffixSort::kDigits - 1); });
    });
  }
  template <class Digit>
  void pass_by(const Digit& digit) {
    sort_.sort_by_digit(
        *left_, busy(), [&](const LaneU32& i) { return suffix_at(i); }, digit,
        [&](const LaneU32&, const LaneU32& suffix, const LaneU32& position) {
          word(*other_suffixes_ + position).store(suffix);
        });
    k_.if_(busy(), [&] { swap(suffixes_, other_suffixes_); });
  }

  // Gives what is left its new ranks, and goes on with those that have one in common.
  template <class Differ>
  void discard(const Differ& differ) {
    [[maybe_unused]] const WarpU32 groups = rank_groups(
        k_, sort_, *left_, busy(), [&](const LaneU32& i) { return suffix_at(i); },
        [&](const LaneU32&, const LaneU32& suffix, const LaneU32& before) { return differ(suffix, before); },
        [&](const LaneU32& i, const LaneU32&, const LaneU32& first) {
          word(new_ranks_ + i).store(word(*rows_ + first).load());
        });
    const auto new_rank = [&](const LaneU32& i) { return word(new_ranks_ + i).load(); };
    const auto shared_lanes = [&](const LaneU32& i, const LaneBool& inside) {
      const LaneU32 mine = new_rank(i);
      const LaneBool as_before = (i != 0) & (new_rank(max(i, 1) - 1) == mine);
      const LaneBool as_next = (i + 1 < *left_) & (new_rank(min(i + 1, *left_ - 1)) == mine);
      return ballot(inside & (as_before | as_next));
    };
    WarpVar kept(k_, 0);
    k_.if_(busy(), [&] {
      sort_.for_stretch(*left_, [&](const WarpU32&, const LaneU32& i, const LaneBool& inside) {
        k_.if_(inside, [&] { word(ranks_ + suffix_at(i)).store(new_rank(i)); });
        kept += popc(shared_lanes(i, inside));
      });
    });
    const auto totals = sort_.totals(*kept, k_.constant<u32>(0));
    k_.if_(busy(), [&] {
      kept = totals.sum_before;
      sort_.for_stretch(*left_, [&](const WarpU32&, const LaneU32& i, const LaneBool& inside) {
        const WarpU32 lanes = shared_lanes(i, inside);
        k_.if_((lanes >> k_.lane() & 1) != 0, [&] {
          const LaneU32 to = *kept + popc(lanes & k_.lanes_below());
          word(*other_suffixes_ + to).store(suffix_at(i));
          word(*other_rows_ + to).store(word(*rows_ + i).load());
        });
        kept += popc(lanes);
      });
      swap(suffixes_, other_suffixes_);
      swap(rows_, other_rows_);
    });
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
  SuffixSort sort_;
  WarpVar left_;                                           // suffixes that share their rank
  WarpVar suffixes_, other_suffixes_, rows_, other_rows_;  // where these begin in the scratch
  BlockU32 ranks_, new_ranks_;
};

}  // namespace

KernelDefinition bwt_rank() {
  return define_bwt(
      {.name = std::string(kBwtRank),
       .block = kBwtSortThreads,
       .min_blocks = 2,
       .budget = {.registers = 64, .shared_bytes = SuffixSort::kSharedBytes},
       .cost = {.threads_per_element = double{kBwtSortThreads} / kTransformItemBytes,
                .buffers = strided_buffers({{"src", N}, {"dst", N + 16}, {"dst_rows", N / 1024}, {"scratch", N * 24}},
                                           kTransformItemBytes),
                .note = "one CTA an item, which is of 64 KiB here"}},
      [](const BlockU32& item_bytes) { return item_bytes * 6; },
      [](const BwtItem& item) {
        return sort_within_limits(item, min(item.item_bytes, kMaxBwtBytes),
                                  [](const BwtItem& within) { DiscardingDoubling(within).sort(); });
      });
}

}  // namespace ptxkit::kernels
