// Symbol frequencies by one warp: the computation of frequencies_reference.cpp. Lane l has the symbols 8l to 8l + 7; of
// another number of symbols, as many as follow from it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/transform.hpp"

namespace ptxkit::kernels {

inline constexpr uint32_t kLaneSymbols = kSymbols / dsl::kWarpLanes;

using SymbolWords = dsl::Ptr<dsl::shared, dsl::u32, 16, dsl::Rate::warp>;  // a word for each symbol

// A value for each of the lane's symbols, of which a warp has `Symbols`, a multiple of 32.
template <uint32_t Symbols>
struct LaneSymbolsOf {
  static constexpr uint32_t kCount = Symbols / dsl::kWarpLanes;

  explicit LaneSymbolsOf(dsl::Kernel& k) : LaneSymbolsOf(k, std::make_index_sequence<kCount>{}) {}
  LaneVar& operator[](size_t i) { return values[i]; }

  LaneU32 sum() { return sum(kCount); }
  LaneU32 largest() { return largest(0, kCount); }

  std::array<LaneVar, kCount> values;

 private:
  template <size_t... I>
  LaneSymbolsOf(dsl::Kernel& k, std::index_sequence<I...>) : values{LaneVar(k, 0 * I)...} {}
  LaneU32 sum(uint32_t count) { return count == 1 ? *values[0] : sum(count - 1) + *values[count - 1]; }
  LaneU32 largest(uint32_t begin, uint32_t end) {
    if (end - begin == 1) return *values[begin];
    const uint32_t middle = (begin + end) / 2;
    return dsl::max(largest(begin, middle), largest(middle, end));
  }
};
using LaneSymbols = LaneSymbolsOf<kSymbols>;

// Calls body(j, s) for j in 0..7, where s is the lane's j-th symbol.
template <uint32_t Symbols = kSymbols, class Body>
void for_lane_symbols(dsl::Kernel& k, const Body& body) {
  constexpr uint32_t kCount = LaneSymbolsOf<Symbols>::kCount;
  const LaneU32 first = k.lane() * kCount;
  dsl::unrolled<kCount>([&](auto j) { body(j, first + j); });
}

// Counts the bytes of `src`: sixteen for each lane at aligned addresses, single bytes before and after that.
inline void count_bytes(dsl::Kernel& k, const StreamSource& src, const WarpU32& size, const SymbolWords& counts) {
  using namespace dsl;
  for_lane_symbols(k, [&](auto, const LaneU32& s) { counts.at(s).store(k.constant<u32>(0)); });
  k.sync_warp();
  const auto count = [&](const LaneU32& s) {
    atomic_add(counts.at(s), k.constant<u32>(1), Order::relaxed, Scope::cta);
  };
  constexpr u32 kPieceBytes = 16;
  const WarpU32 excess = trunc<u32>(src.address()) % kPieceBytes;
  const WarpU32 front = min((0 - excess) % kPieceBytes, size);
  const WarpU32 pieces = (size - front) / kPieceBytes;
  const auto aligned = src.align_down<kPieceBytes>().template as<u32>();
  for_each_lane(k, pieces, [&](const LaneU32& i) {
    const auto words = aligned.at(times<4>(i + (excess + front) / kPieceBytes)).template load_vector<4>();
    for (const auto& word : words) unrolled<4>([&](auto j) { count(word >> 8 * j & 0xFF); });
  });
  const WarpU32 rest = size - pieces * kPieceBytes;
  for_each_lane(k, rest, [&](const LaneU32& i) {
    count(zext<u32>(src.at(select(i < front, i, i + pieces * kPieceBytes)).load()));
  });
  k.sync_warp();
}

// Scales the counts to frequencies that sum to 2^scale_bits. `total` is the sum of the counts and not 0.
inline void normalise_frequencies(dsl::Kernel& k, const SymbolWords& counts, const WarpU32& total,
                                  const WarpU32& scale_bits, LaneSymbols& frequencies) {
  using namespace dsl;
  // the remainder of rounding down in the high bits, 255 - symbol below: the largest gets the next unit
  LaneSymbols lost(k);
  const auto total_64 = zext<u64>(total);
  for_lane_symbols(k, [&](auto j, const LaneU32& s) {
    const auto exact = zext<u64>(counts.at(s).load()) << zext<u64>(scale_bits);
    const auto whole = exact / total_64;
    const LaneU32 rest = trunc<u32>(exact - whole * total_64);
    const LaneBool raised = (whole == 0) & (exact != 0);
    frequencies[j] = select(raised, 1, trunc<u32>(whole));
    lost[j] = select(raised | (rest == 0), 0, rest << 8 | (kSymbols - 1 - s));
  });
  const WarpU32 sum = reduce_add(frequencies.sum());
  const WarpU32 wanted = k.constant<u32>(1) << scale_bits;
  k.range(sum, wanted, 1, [&](const auto&) {
    const WarpU32 most = reduce_max(lost.largest());
    unrolled<kLaneSymbols>([&](auto j) {
      const LaneBool chosen = *lost[j] == most;
      frequencies[j] += zext<u32>(chosen);
      lost[j] = select(chosen, 0, *lost[j]);
    });
  });
  LaneSymbols keys(k);
  k.range(wanted, sum, 1, [&](const auto&) {
    for_lane_symbols(k, [&](auto j, const LaneU32& s) { keys[j] = *frequencies[j] << 8 | (kSymbols - 1 - s); });
    const WarpU32 largest = reduce_max(keys.largest());
    unrolled<kLaneSymbols>([&](auto j) { frequencies[j] -= zext<u32>(*keys[j] == largest); });
  });
}

// --- the table in a stream: write_table and read_table of frequencies_reference.hpp ---

// A mask of the lane's symbols whose frequency is not 0.
inline LaneU32 present_mask(dsl::Kernel& k, LaneSymbols& frequencies) {
  LaneVar mask(k, 0);
  dsl::unrolled<kLaneSymbols>([&](auto j) { mask |= dsl::zext<dsl::u32>(*frequencies[j] != 0) << j; });
  return *mask;
}

inline WarpU32 table_bytes(dsl::Kernel& k, LaneSymbols& frequencies) {
  return dsl::reduce_add(dsl::popc(present_mask(k, frequencies))) * 2 + kTableMaskBytes;
}

inline void write_table(dsl::Kernel& k, LaneSymbols& frequencies, const StreamRoom& to) {
  using namespace dsl;
  const LaneU32 mask = present_mask(k, frequencies);
  to.at(k.lane()).store(trunc<u8>(mask));
  LaneVar next(k, exclusive_sum(popc(mask)) * 2 + kTableMaskBytes);
  unrolled<kLaneSymbols>([&](auto j) {
    k.if_(*frequencies[j] != 0, [&] { store_u16(to.at(*next), *frequencies[j]); });
    next += zext<u32>(*frequencies[j] != 0) * 2;
  });
}

// Reads the table at the start of `from`, of which `size` bytes are available, and returns its length in bytes. Fails
// with input_overrun or bad_table.
template <class Fail>
WarpU32 read_table(dsl::Kernel& k, const StreamSource& from, const WarpU32& size, const WarpU32& sum,
                   LaneSymbols& frequencies, const Fail& fail_if) {
  using namespace dsl;
  fail_if(size < kTableMaskBytes, StreamStatus::input_overrun);
  const LaneU32 mask = zext<u32>(from.at(k.lane()).load());
  const WarpU32 end = reduce_add(popc(mask)) * 2 + kTableMaskBytes;
  fail_if(size < end, StreamStatus::input_overrun);
  LaneVar next(k, exclusive_sum(popc(mask)) * 2 + kTableMaskBytes), zeros(k, 0);
  unrolled<kLaneSymbols>([&](auto j) {
    k.if_((mask >> j & 1) != 0, [&] {
      frequencies[j] = load_u16(from.at(*next));
      zeros |= zext<u32>(*frequencies[j] == 0);
      next += 2;
    });
  });
  fail_if((reduce_add(frequencies.sum()) != sum) | any(*zeros != 0), StreamStatus::bad_table);
  return end;
}

}  // namespace ptxkit::kernels
