// The tokens of an item, by one warp: deflate_tokens_reference. Whether a match is coded depends on nothing but the
// match, so each lane decides on one. A sum over the lanes says where the literals before it and the match itself go.
#pragma once

#include <array>

#include "kernels/deflate/deflate_arrays.hpp"
#include "kernels/entropy/frequencies.hpp"

namespace ptxkit::kernels {

// The code of a value that has so many extra bits behind it; `first` codes have none.
struct DeflateLaneCode {
  LaneU32 code, extra_bits;
};
inline DeflateLaneCode deflate_lane_code_of_distance(const LaneU32& distance_less_one) {
  using namespace dsl;
  const LaneU32 bits = 30 - min(clz(distance_less_one), 30);  // of values below 4 none: log2 less one
  return {bits * 2 + (distance_less_one >> bits), bits};
}
inline DeflateLaneCode deflate_lane_code_of_length(const LaneU32& length_less_three) {
  using namespace dsl;
  const LaneU32 bits = 29 - min(clz(length_less_three), 29);
  const LaneBool is_longest = length_less_three == kDeflateMaxMatch - kDeflateMinMatch;
  return {select(is_longest, kDeflateLengthCodes - 1, bits * 4 + (length_less_three >> bits)),
          select(is_longest, 0, bits)};
}

template <class Matches, class Tokens>
class DeflateTokens {
 public:
  DeflateTokens(dsl::Kernel& k, const ItemSource& src, const WarpU32& size, const Matches& matches,
                const Tokens& tokens, const DeflateArrays& arrays)
      : k_(k),
        src_(src),
        size_(size),
        matches_(matches),
        tokens_(tokens),
        counts_(arrays.counts()),
        runs_(arrays.runs()),
        made_(k, 0),
        at_(k, 0) {}

  // Lists and counts all tokens; up to three zeros follow them. Returns their number.
  WarpU32 make(const WarpU32& match_count) {
    using namespace dsl;
    const WarpU32 byte_cost = literal_cost();
    clear_counts();
    k_.range(0, match_count, kWarpLanes, [&](const WarpU32& first) { take(first, match_count, byte_cost); });
    const WarpU32 rest = size_ - *at_;
    for_each_lane(k_, rest, [&](const LaneU32& i) { put_literal(*made_ + i, *at_ + i); });
    made_ += rest;
    k_.if_(k_.lane() < (0 - *made_) % 4, [&] { tokens_.at(*made_ + k_.lane()).store(k_.constant<u32>(0)); });
    k_.sync_warp();
    return *made_;
  }

 private:
  static LaneU32 log2_of(const LaneU32& value) {
    using namespace dsl;
    const LaneU32 zeros = clz(value);
    return ((31 - zeros) << 8) + ((value << zeros) >> 23 & 0xFF);
  }

  // What a byte costs on average as a literal, in 1/256 bit.
  WarpU32 literal_cost() {
    using namespace dsl;
    count_bytes(k_, src_, size_, counts_);
    LaneVar cost(k_, 0);
    const WarpU32 total = max(size_, 1);
    for_lane_symbols(k_, [&](auto, const LaneU32& s) {
      const LaneU32 count = counts_.at(s).load();
      cost += count * (log2_of(total) - log2_of(max(count, 1)));
    });
    return max(reduce_add(*cost) / total, kDeflateLeastLiteralCost);
  }
  void clear_counts() {
    k_.sync_warp();
    for_each_lane(k_, k_.constant(kDeflateCountWords),
                  [&](const LaneU32& i) { counts_.at(i).store(k_.constant<dsl::u32>(0)); });
    k_.sync_warp();
  }

  void count(const LaneU32& symbol, const LaneU32& by) {
    atomic_add(counts_.at(symbol), by, dsl::Order::relaxed, dsl::Scope::cta);
  }
  void put_literal(const LaneU32& to, const LaneU32& from) {
    const LaneU32 byte = dsl::zext<dsl::u32>(src_.at(from).load());
    tokens_.at(to).store(byte);
    count(byte, k_.constant<dsl::u32>(1));
  }

  // Takes the matches from `first` on, one for each lane, and the literals before each.
  void take(const WarpU32& first, const WarpU32& match_count, const WarpU32& byte_cost) {
    using namespace dsl;
    const LaneU32 i = first + k_.lane();
    LaneVar lengths(k_, 0), distance(k_, 1);
    k_.if_(i < match_count, [&] {
      const auto [both, found] = matches_.at(times<2>(i)).template load_vector<2>();
      lengths = both;
      distance = found;
    });
    const LaneU32 length = *lengths >> 16, bytes = (*lengths & 0xFFFF) + length;
    const LaneU32 ends = inclusive_sum(bytes);
    const auto code = deflate_lane_code_of_distance(*distance - 1);
    const LaneBool is_coded = (length != 0) & (length * byte_cost >= (code.extra_bits + kDeflateMatchCostBits) << 8);
    const LaneU32 literals = select(is_coded, bytes - length, bytes);
    const LaneU32 pieces = select(is_coded, deflate_match_count(length), 0);
    // The literals are at most 2^16, and counted in the low 17 bits.
    constexpr u32 kLiteralBits = 17, kLiteralMask = (1u << kLiteralBits) - 1;
    const LaneU32 both = literals | pieces << kLiteralBits, sum = inclusive_sum(both), before = sum - both;
    const LaneU32 literals_before = before & kLiteralMask, pieces_before = before >> kLiteralBits;
    const LaneBool has_literals = literals != 0;
    const WarpU32 with_literals = ballot(has_literals);
    k_.if_(has_literals, [&] {
      runs_.at(times<2>(popc(with_literals & k_.lanes_below())))
          .store_vector(std::array{*made_ + pieces_before, *at_ + ends - bytes - literals_before});
    });
    k_.if_(is_coded, [&] {
      put_match(*made_ + pieces_before + literals_before + literals, length, *distance);
      count(code.code + kDeflateLiteralSymbols, pieces);
    });
    k_.sync_warp();
    const WarpU32 total = shuffle(sum, kWarpLanes - 1);
    for_run_bytes(
        k_, runs_, select(has_literals, literals_before, k_.template constant<u32>(~0u)), total & kLiteralMask,
        [&](const LaneU32& to, const LaneU32& from, const LaneU32& byte) { put_literal(to + byte, from + byte); });
    made_ += (total & kLiteralMask) + (total >> kLiteralBits);
    at_ += shuffle(ends, kWarpLanes - 1);
    k_.sync_warp();  // every lane has read the runs
  }

  void put_match(const LaneU32& first, const LaneU32& length, const LaneU32& distance) {
    using namespace dsl;
    LaneVar to(k_, first), rest(k_, length);
    k_.thread_loop([&](auto& parts) {
      const LaneU32 cut = select(*rest < kDeflateMaxMatch + kDeflateMinMatch, *rest - kDeflateMinMatch,
                                 k_.constant(u32{kDeflateMaxMatch}));
      const LaneU32 part = select(*rest <= kDeflateMaxMatch, *rest, cut);
      tokens_.at(*to).store(deflate_match_token(part, distance));
      count(deflate_lane_code_of_length(part - kDeflateMinMatch).code + kDeflateFirstLength, k_.constant<u32>(1));
      rest -= part;
      to += 1;
      parts.break_if(*rest == 0);
    });
  }

  dsl::Kernel& k_;
  ItemSource src_;
  WarpU32 size_;
  Matches matches_;
  Tokens tokens_;
  SymbolWords counts_;
  MatchList runs_;
  WarpVar made_, at_;  // tokens, and the bytes that they stand for
};

}  // namespace ptxkit::kernels
