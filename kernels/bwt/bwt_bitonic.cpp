// The BWT of small blocks in shared memory: rank doubling as in bwt_radix.cpp, with the bitonic sorting network of K.
// E. Batcher, "Sorting Networks and Their Applications", AFIPS 1968. The low bits of a key are its suffix, so no two
// keys are equal.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/bwt/abi.hpp"
#include "kernels/bwt/bwt_item.hpp"
#include "kernels/bwt/bwt_sort.hpp"
#include "kernels/kernels.hpp"
#include "kernels/transform.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;
using LaneU64 = Expr<u64, Rate::thread>;

constexpr u32 kSuffixBits = 12;
static_assert(kMaxBitonicBytes == 1u << kSuffixBits);

class BitonicDoubling {
 public:
  explicit BitonicDoubling(const StridedItem& item)
      : item_(item),
        k_(item.k),
        n_(item.src_size),
        stretches_(k_),
        keys_(k_.shared<u64, kMaxBitonicBytes, 16>("keys").data()),
        ranks_(k_.shared<u16, kMaxBitonicBytes, 16>("ranks").data()) {}

  void sort() {
    const WarpBool always = k_.constant<u32>(0) == 0;
    for_each_place([&](const LaneU32& i) {
      LaneVar word(k_, 0);
      unrolled<kFirstBytes>([&](auto byte) {
        const LaneU32 at = i + byte;
        const LaneBool inside = at < n_;
        word = *word << 8 | select(inside, zext<u32>(item_.src.at(select(inside, at, 0)).load()), 0);
      });
      // Bytes after the block's end count as zeros. Of words that are then equal, the shorter suffix is smaller.
      return zext<u64>(*word) << 3 | zext<u64>(min(n_ - i, kFirstBytes));
    });
    sort_keys(always);
    rank(always);
    k_.range(k_.constant<u32>(0), bits_of_rank(n_), 1, [&](const BlockU32& round) {
      const BlockU32 distance = k_.constant(kFirstBytes) << round;
      const WarpBool busy = *groups_ < n_;
      mark_block(k_, Mark::parse, distance);
      k_.if_(busy, [&] {
        for_each_place([&](const LaneU32& i) {
          const LaneBool inside = distance < n_ - i;
          const LaneU32 second = select(inside, rank_of(select(inside, i + distance, 0)) + 1, 0);
          return zext<u64>(rank_of(i) << (kSuffixBits + 1) | second);
        });
      });
      k_.barrier();
      sort_keys(busy);
      rank(busy);
    });
    WarpVar rank_of_block(k_, 0);
    k_.if_(n_ != 0, [&] { rank_of_block = shuffle(rank_of(k_.constant<u32>(0)), 0); });
    write_bwt_block(item_, stretches_, [&](const LaneU32& i) { return suffix_at(i); }, *rank_of_block);
  }

 private:
  BlockU32 places() { return k_.constant<u32>(1) << bits_of_rank(n_); }  // a power of two
  LaneU64 key(const LaneU32& i) { return keys_.at(i).load(); }
  LaneU32 suffix_at(const LaneU32& i) { return trunc<u32>(key(i)) & (kMaxBitonicBytes - 1); }
  LaneU32 rank_of(const LaneU32& suffix) { return zext<u32>(ranks_.at(suffix).load()); }

  // Stores each suffix's key, with by_what(suffix) in its high bits, and fills the remaining places with the largest
  // key.
  template <class ByWhat>
  void for_each_place(const ByWhat& by_what) {
    k_.range(k_.constant<u32>(0), places(), kBwtSortThreads, [&](const BlockU32& first) {
      const LaneU32 i = first + k_.thread();
      k_.if_(i < n_, [&] { keys_.at(i).store(by_what(i) << kSuffixBits | zext<u64>(i)); });
      k_.if_((i >= n_) & (i < places()), [&] { keys_.at(i).store(~k_.constant<u64>(0)); });
    });
  }

  void sort_keys(const WarpBool& busy) {
    k_.range(k_.constant<u32>(0), bits_of_rank(n_), 1, [&](const BlockU32& merged) {
      k_.range(k_.constant<u32>(0), merged + 1, 1, [&](const BlockU32& step) {
        k_.barrier();
        k_.if_(busy, [&] { exchange(merged + 1, merged - step); });
      });
    });
    k_.barrier();
  }

  // Orders pairs of places that are 2^distance_bits apart, alternately ascending and descending in runs of 2^run_bits.
  void exchange(const BlockU32& run_bits, const BlockU32& distance_bits) {
    const BlockU32 distance = k_.constant<u32>(1) << distance_bits;
    k_.range(k_.constant<u32>(0), places() / 2, kBwtSortThreads, [&](const BlockU32& first) {
      const LaneU32 pair = first + k_.thread();
      k_.if_(pair < places() / 2, [&] {
        const LaneU32 low = (pair >> distance_bits) << (distance_bits + 1) | (pair & (distance - 1));
        const LaneU32 high = low + distance;
        const LaneU64 a = key(low), b = key(high);
        const LaneBool ascends = (low >> run_bits & 1) == 0;
        k_.if_((a > b) == ascends, [&] {
          keys_.at(low).store(b);
          keys_.at(high).store(a);
        });
      });
    });
  }

  void rank(const WarpBool& busy) {
    const auto differ = [&](const LaneU32& i) {
      return (key(i) >> kSuffixBits) != (key(max(i, 1) - 1) >> kSuffixBits);
    };
    const WarpU32 groups = rank_groups(
        k_, stretches_, n_, busy, [&](const LaneU32& i) { return suffix_at(i); },
        [&](const LaneU32& i, const LaneU32&, const LaneU32&) { return differ(i); },
        [&](const LaneU32&, const LaneU32& suffix, const LaneU32& rank) { ranks_.at(suffix).store(trunc<u16>(rank)); });
    k_.if_(busy, [&] { groups_ = groups; });
  }

  const StridedItem& item_;
  Kernel& k_;
  BlockU32 n_;
  SuffixStretches stretches_;
  Ptr<shared, u64, 16> keys_;
  Ptr<shared, u16, 16> ranks_;
  WarpVar groups_{k_, 0};
};

}  // namespace

KernelDefinition bwt_bitonic() {
  return define_strided(
      {.name = std::string(kBwtBitonic),
       .block = kBwtSortThreads,
       .min_blocks = 2,
       .budget = {.registers = 64, .shared_bytes = 10 * kMaxBitonicBytes + SuffixStretches::kSharedBytes},
       .cost = {.threads_per_element = double{kBwtSortThreads} / kMaxBitonicBytes,
                .buffers = strided_buffers({{"src", N}, {"dst", kBwtBlockRoom}}),
                .note = "one CTA an item of at most 4096 bytes"}},
      [](const StridedItem& item) {
        return sort_within_limits(item, item.k.constant(kMaxBitonicBytes),
                                  [](const StridedItem& within) { BitonicDoubling(within).sort(); });
      });
}

}  // namespace ptxkit::kernels
