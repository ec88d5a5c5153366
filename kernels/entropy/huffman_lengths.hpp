// Huffman code lengths by one warp: those of code_lengths in huffman_reference.cpp. All lanes sort and count. Pairing
// is done by lane 0: a step for each symbol, each of which depends on the previous one.
#pragma once

#include <bit>

#include "kernels/entropy/frequencies.hpp"

namespace ptxkit::kernels {

// Arrays with a word for each symbol, leaf or pair.
struct CodeLengthWorkspace {
  SymbolWords counts;        // of symbols; later the symbols' codes
  SymbolWords leaves;        // in ascending order: the count above the symbol's bits, and the symbol
  SymbolWords pairs;         // at first leaves that are not sorted; weights; later depths
  SymbolWords leaf_parents;  // the pair of each leaf; later the length of each symbol's code
  SymbolWords pair_parents;
  SymbolWords length_counts;  // one more than the longest code has bits
};

// The shared arrays for codes of at most MaxBits bits, and the bytes of them.
template <uint32_t MaxBits>
CodeLengthWorkspace code_length_workspace(dsl::Kernel& k) {
  using dsl::u32;
  return {k.shared<u32, kSymbols, 16>("counts").data(),       k.shared<u32, kSymbols, 16>("leaves").data(),
          k.shared<u32, kSymbols, 16>("pairs").data(),        k.shared<u32, kSymbols, 16>("leaf_parents").data(),
          k.shared<u32, kSymbols, 16>("pair_parents").data(), k.shared<u32, MaxBits + 1, 16>("length_counts").data()};
}
template <uint32_t MaxBits>
inline constexpr uint32_t kCodeLengthWorkspaceBytes = (5 * kSymbols + MaxBits + 1) * sizeof(uint32_t);

// `Symbols` is a multiple of 32. The counts sum to less than 2^(32 - the bits of a symbol).
template <uint32_t MaxBits, uint32_t Symbols = kSymbols>
class CodeLengths {
 public:
  using Lengths = LaneSymbolsOf<Symbols>;

  CodeLengths(dsl::Kernel& k, const CodeLengthWorkspace& shared) : k_(k), shared_(shared) {}

  // Computes the code lengths of the lane's symbols from the counts.
  void make(Lengths& lengths) {
    using namespace dsl;
    const WarpU32 leaf_count = sort_leaves();
    k_.if_(leaf_count < 2, [&] {
        for_lane_symbols<Symbols>(
            k_, [&](auto j, const LaneU32& s) { lengths[j] = zext<u32>(shared_.counts.at(s).load() != 0); });
      }).else_([&] {
      k_.once_per_warp([&] { pair_up(leaf_count); });
      k_.sync_warp();
      count_lengths(leaf_count);
      k_.sync_warp();
      k_.once_per_warp([&] { limit_lengths(); });
      k_.sync_warp();
      give_out(leaf_count);
      for_lane_symbols<Symbols>(k_, [&](auto j, const LaneU32& s) {
        k_.if_(shared_.counts.at(s).load() != 0, [&] { lengths[j] = shared_.leaf_parents.at(s).load(); });
      });
    });
    k_.sync_warp();
  }

 private:
  // Sorts the occurring symbols by (count, symbol): a symbol's place is the number of occurring symbols before it.
  // Returns their number.
  WarpU32 sort_leaves() {
    using namespace dsl;
    Lengths keys(k_), places(k_);
    LaneVar present(k_, 0);
    for_lane_symbols<Symbols>(k_, [&](auto j, const LaneU32& s) {
      const LaneU32 count = shared_.counts.at(s).load();
      keys[j] = select(count == 0, kNone, count << kSymbolBits | s);
      present += zext<u32>(count != 0);
    });
    const LaneU32 sum = inclusive_sum(*present);
    const WarpU32 leaf_count = shuffle(sum, kWarpLanes - 1);
    const auto for_present = [&](const auto& body) {
      unrolled<Lengths::kCount>([&](auto j) { k_.if_(*keys[j] != kNone, [&] { body(j); }); });
    };
    LaneVar to(k_, sum - *present);
    for_present([&](auto j) {
      shared_.pairs.at(*to).store(*keys[j]);
      to += 1;
    });
    k_.sync_warp();
    k_.range(0, leaf_count, 1, [&](const auto& i) {
      const LaneU32 key = shared_.pairs.at(i).load();
      unrolled<Lengths::kCount>([&](auto j) { places[j] += zext<u32>(key < *keys[j]); });
    });
    for_present([&](auto j) { shared_.leaves.at(*places[j]).store(*keys[j]); });
    k_.sync_warp();
    return leaf_count;
  }

  // Builds the tree in one lane: the parents, and the depth of each pair. The last pair is the root.
  void pair_up(const WarpU32& leaf_count) {
    using namespace dsl;
    LaneVar leaf(k_, 0), pair(k_, 0);
    const LaneU32 last = leaf_count - 2;
    k_.range(0, last + 1, 1, [&](const LaneU32& made) {
      const auto take_lightest = [&] {
        const LaneBool has_leaf = *leaf < leaf_count, has_pair = *pair < made;
        const LaneU32 leaf_weight =
            select(has_leaf, shared_.leaves.at(select(has_leaf, *leaf, 0)).load() >> kSymbolBits, kNone);
        LaneVar weight(k_, leaf_weight), takes_pair(k_, 0);
        k_.if_(has_pair, [&] {
          const LaneU32 pair_weight = shared_.pairs.at(*pair).load();
          k_.if_(pair_weight < leaf_weight, [&] {
            weight = pair_weight;
            takes_pair = 1;
          });
        });
        k_.if_(*takes_pair != 0, [&] {
            shared_.pair_parents.at(*pair).store(made);
            pair += 1;
          }).else_([&] {
          shared_.leaf_parents.at(*leaf).store(made);
          leaf += 1;
        });
        return *weight;
      };
      const LaneU32 first = take_lightest();
      shared_.pairs.at(made).store(first + take_lightest());
    });
    shared_.pairs.at(last).store(k_.constant<u32>(0));
    LaneVar i(k_, last);
    k_.thread_loop([&](auto& pairs) {
      pairs.break_if(*i == 0);
      i -= 1;
      shared_.pairs.at(*i).store(shared_.pairs.at(shared_.pair_parents.at(*i).load()).load() + 1);
    });
  }

  void count_lengths(const WarpU32& leaf_count) {
    using namespace dsl;
    Lengths lengths(k_);
    for_lane_symbols<Symbols>(k_, [&](auto j, const LaneU32& leaf) {
      k_.if_(leaf < leaf_count,
             [&] { lengths[j] = min(shared_.pairs.at(shared_.leaf_parents.at(leaf).load()).load() + 1, MaxBits); });
    });
    k_.range(k_.constant<u32>(1), MaxBits + 1, 1, [&](const auto& length) {
      LaneVar own(k_, 0);
      unrolled<Lengths::kCount>([&](auto j) { own += zext<u32>(*lengths[j] == length); });
      const WarpU32 count = reduce_add(*own);
      k_.once_per_warp([&] { shared_.length_counts.at(length).store(count); });
    });
  }

  // Moves codes between lengths, in one lane, until the code is complete.
  void limit_lengths() {
    using namespace dsl;
    const auto count_at = [&](const LaneU32& length) { return shared_.length_counts.at(length).load(); };
    const auto change = [&](const LaneU32& length, const LaneU32& by) {
      shared_.length_counts.at(length).store(count_at(length) + by);
    };
    const LaneU32 one = k_.constant<u32>(1), minus_one = k_.constant<u32>(kNone);
    LaneVar size(k_, 0);
    k_.range(one, MaxBits + 1, 1, [&](const LaneU32& length) { size += count_at(length) << (MaxBits - length); });
    k_.thread_loop([&](auto& too_large) {
      too_large.break_if(*size <= kWholeCode);
      LaneVar length(k_, MaxBits - 1);
      k_.thread_loop([&](auto& lengths) {
        lengths.break_if(count_at(*length) != 0);
        length -= 1;
      });
      change(*length, minus_one);
      change(*length + 1, one);
      size -= shift_left(1, MaxBits - 1 - *length);
    });
    k_.thread_loop([&](auto& too_small) {
      too_small.break_if(*size == kWholeCode);
      change(k_.constant(u32{MaxBits}), minus_one);
      change(k_.constant(u32{MaxBits - 1}), one);
      size += 1;
    });
  }

  // Assigns the lengths: the lightest leaves get the longest codes.
  void give_out(const WarpU32& leaf_count) {
    using namespace dsl;
    Lengths lengths(k_);
    unrolled<Lengths::kCount>([&](auto j) { lengths[j] = k_.constant(u32{MaxBits}); });
    LaneVar given(k_, 0);
    k_.range(k_.constant<u32>(0), u32{MaxBits}, 1, [&](const auto& i) {
      given += shared_.length_counts.at(MaxBits - i).load();
      for_lane_symbols<Symbols>(k_, [&](auto j, const LaneU32& leaf) { lengths[j] -= zext<u32>(leaf >= *given); });
    });
    for_lane_symbols<Symbols>(k_, [&](auto j, const LaneU32& leaf) {
      k_.if_(leaf < leaf_count,
             [&] { shared_.leaf_parents.at(shared_.leaves.at(leaf).load() & kSymbolMask).store(*lengths[j]); });
    });
    k_.sync_warp();
  }

  static constexpr uint32_t kWholeCode = 1u << MaxBits;
  static constexpr uint32_t kNone = ~0u;
  static constexpr uint32_t kSymbolBits = std::bit_width(Symbols - 1);
  static constexpr uint32_t kSymbolMask = (1u << kSymbolBits) - 1;

  dsl::Kernel& k_;
  CodeLengthWorkspace shared_;
};

}  // namespace ptxkit::kernels
