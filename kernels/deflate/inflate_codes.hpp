// The codes of a block (RFC 1951, 3.2.2) as tables in shared memory, made by one warp.
//
// Canonical codes are in the order of their symbols' ranks: shorter ones first, equal ones by symbol. So the strings of
// so many bits as are looked up, in their order, have ranks that only grow. A bit for each code that begins there is
// all that the table follows from: each lane fills a run of it and counts.
#pragma once

#include <vector>

#include "kernels/deflate/inflate_input.hpp"

namespace ptxkit::kernels {

// Rows: of 32 symbols. Bits: that are looked up.
template <dsl::u32 Rows, dsl::u32 Bits>
class InflateCode {
 public:
  static constexpr dsl::u32 kEntries = 1u << Bits, kLengths = 16;
  static constexpr dsl::u32 kStartWords = kEntries / 32;
  static constexpr dsl::u32 kSharedBytes = 4 * (kEntries + Rows * dsl::kWarpLanes + 2 * kLengths);

  struct Names {
    const char *table, *entries, *limits, *ranks;
  };
  InflateCode(dsl::Kernel& k, const Names& names)
      : k_(k),
        table_(k.shared<dsl::u32, kEntries, 16>(names.table).data()),
        entries_(k.shared<dsl::u32, Rows * dsl::kWarpLanes, 16>(names.entries).data()),
        limits_(k.shared<dsl::u32, kLengths, 16>(names.limits).data()),
        ranks_(k.shared<dsl::u32, kLengths, 16>(names.ranks).data()) {}

  // Makes the tables for `count` symbols whose codes have `lengths`, which are followed by bytes up to whole rows.
  // `entry_of(symbol, length)` is what is looked up. The result is whether the lengths are those of a code: of all
  // strings, or, if it may be partial, of none or of a single code of one bit.
  template <class Lengths, class EntryOf>
  WarpBool make(const Lengths& lengths, const WarpU32& count, bool may_be_partial, const EntryOf& entry_of) {
    using namespace dsl;
    const LaneU32 lane = k_.lane();
    // How many codes each length has, and for each symbol how many of its length are before it.
    k_.if_(lane < kLengths, [&] { ranks_.at(lane).store(k_.constant<u32>(0)); });
    for_each_lane(k_, k_.constant(kStartWords), [&](const LaneU32& i) { table_.at(i).store(k_.constant<u32>(0)); });
    k_.sync_warp();
    std::vector<LaneU32> length, before;
    for (u32 row = 0; row < Rows; ++row) {
      const LaneU32 symbol = lane + k_.constant(row * kWarpLanes);
      length.push_back(select(symbol < count, zext<u32>(lengths.at(symbol).load()), 0));
      const LaneU32 same = match_any(length[row]);
      before.push_back(ranks_.at(length[row]).load() + popc(same & k_.lanes_below()));
      k_.sync_warp();  // every lane has read before one writes
      k_.if_((same >> lane) == 1, [&] { ranks_.at(length[row]).store(before[row] + 1); });
      k_.sync_warp();
    }
    // Lane l has what holds for the codes of l bits. Strings have kDeflateMaxCodeBits bits.
    const LaneBool is_length = (lane != 0) & (lane < kLengths);
    const LaneU32 unused_bits = kDeflateMaxCodeBits - min(lane, kDeflateMaxCodeBits);
    const LaneU32 codes = select(is_length, ranks_.at(min(lane, kLengths - 1)).load(), 0);
    k_.sync_warp();  // every lane has read before one writes
    const LaneU32 strings = codes << unused_bits;
    const LaneU32 first = exclusive_sum(strings), first_rank = exclusive_sum(codes);
    const WarpU32 all = reduce_add(strings), used = reduce_add(codes);
    constexpr u32 kAll = 1u << kDeflateMaxCodeBits;
    const WarpBool is_single = (used == 0) | ((used == 1) & (all == kAll / 2));
    const WarpBool is_code = may_be_partial ? WarpBool((all == kAll) | is_single) : WarpBool(all == kAll);
    k_.if_(is_code, [&] {
      k_.if_(lane < kLengths, [&] {
        limits_.at(lane).store(first + strings);
        ranks_.at(lane).store(first_rank - (first >> unused_bits));
      });
      for (u32 row = 0; row < Rows; ++row) {
        const LaneU32 rank = shuffle(first_rank, length[row]) + before[row],
                      first_of_length = shuffle(first, length[row]);
        k_.if_(length[row] != 0, [&] {
          entries_.at(rank).store(entry_of(lane + k_.constant(row * kWarpLanes), length[row]));
          k_.if_(length[row] <= Bits, [&] {
            const LaneU32 string = first_of_length + (before[row] << (kDeflateMaxCodeBits - length[row]));
            const LaneU32 at = string >> (kDeflateMaxCodeBits - Bits);
            atomic_or(table_.at(at >> 5), shift_left(1, at & 31), Order::relaxed, Scope::cta);
          });
        });
      }
      k_.sync_warp();
      fill();
    });
    k_.sync_warp();
    return is_code;
  }

  // What the code at the start of `bits` says, or kInflateIsBad if there is none.
  LaneU32 find(const LaneU32& bits) const {
    using namespace dsl;
    LaneVar entry(k_, table_.at(bits & (kEntries - 1)).load());
    k_.if_(*entry == 0, [&] {
      const LaneU32 string = brev(bits) >> (32 - kDeflateMaxCodeBits);
      LaneVar length(k_, Bits + 1);
      k_.thread_loop([&](auto& lengths) {
        lengths.break_if(*length > kDeflateMaxCodeBits);
        lengths.break_if(string < limits_.at(*length).load());
        length += 1;
      });
      entry = kInflateIsBad;
      k_.if_(*length <= kDeflateMaxCodeBits, [&] {
        entry = entries_.at(ranks_.at(*length).load() + (string >> (kDeflateMaxCodeBits - *length))).load();
      });
    });
    return *entry;
  }

  InflateShared<dsl::u32> table() const { return table_; }

 private:
  // Fills the table from the bits in its first words, which say where codes begin.
  void fill() {
    using namespace dsl;
    constexpr u32 kRun = kEntries / kWarpLanes;
    static_assert(kRun <= 32);
    const LaneU32 begin = k_.lane() * kRun;
    LaneVar starts(k_, table_.at(begin >> 5).load() >> (begin & 31));
    if (kRun < 32) starts &= (1u << kRun % 32) - 1;
    LaneVar rank(k_, exclusive_sum(popc(*starts)) - 1);
    const WarpU32 strings = broadcast(limits_.at<Bits>().load()) >> (kDeflateMaxCodeBits - Bits);
    k_.sync_warp();
    k_.range(k_.constant<u32>(0), k_.constant(kRun), 1, [&](const auto& i) {
      rank += *starts & 1;
      starts = *starts >> 1;
      const LaneU32 string = begin + i;
      LaneVar entry(k_, 0);
      k_.if_(string < strings, [&] { entry = entries_.at(*rank).load(); });
      table_.at(bit_field(brev(string), 32 - Bits, Bits)).store(*entry);
    });
  }

  dsl::Kernel& k_;
  InflateShared<dsl::u32> table_;
  InflateShared<dsl::u32> entries_;  // by rank
  InflateShared<dsl::u32> limits_;   // of each length, the first string that begins with no code of that length or less
  InflateShared<dsl::u32> ranks_;    // and what to add to such a code for its rank
};

// Both codes of a block, and how they are read.
class InflateBlockCodes {
 public:
  using Literals = InflateCode<kDeflateFixedLiteralCodes / dsl::kWarpLanes, kInflateLiteralBits>;
  using Distances = InflateCode<1, kInflateDistanceBits>;
  static constexpr dsl::u32 kLengths = kDeflateFixedLiteralCodes + kDeflateFixedDistanceCodes;
  static constexpr dsl::u32 kSharedBytes = Literals::kSharedBytes + Distances::kSharedBytes + kLengths;

  InflateBlockCodes(dsl::Kernel& k, const InflateInput& input)
      : literals(k, {"literals", "literal_entries", "literal_limits", "literal_ranks"}),
        distances(k, {"distances", "distance_entries", "distance_limits", "distance_ranks"}),
        k_(k),
        input_(input),
        lengths_(k.shared<dsl::u8, kLengths, 16>("lengths").data()),
        is_fixed_(k, 0) {}

  Literals literals;
  Distances distances;

  void use_fixed() {
    using namespace dsl;
    k_.if_(*is_fixed_ == 0, [&] {
      k_.sync_warp();
      for_each_lane(k_, k_.constant(kLengths), [&](const LaneU32& i) {
        const LaneU32 bits = select(i < 144, k_.constant<u32>(8),
                                    select(i < 256, k_.constant<u32>(9), select(i < 280, k_.constant<u32>(7), 8)));
        const LaneU32 length = select(i < kDeflateFixedLiteralCodes, bits, kDeflateFixedDistanceBits);
        lengths_.at(i).store(trunc<u8>(length));
      });
      k_.sync_warp();
      const WarpBool are_codes = make(k_.constant(kDeflateFixedLiteralCodes), k_.constant(kDeflateFixedDistanceCodes));
      is_fixed_ = zext<u32>(are_codes);
    });
  }

  // Memory of the literals' table, whose codes are lost.
  InflateShared<dsl::u32> take_table() {
    is_fixed_ = 0;
    return literals.table();
  }

  // The codes of a dynamic block whose header goes on at `position`. The result is the position behind it, 0 if it is
  // not valid.
  WarpU32 read(const WarpU32& position) {
    using namespace dsl;
    WarpVar result(k_, 0);
    is_fixed_ = 0;
    k_.warp_loop([&](auto& once) {
      const WarpU32 head = broadcast(input_.bits(position));
      const WarpU32 literal_count = (head & 31) + kDeflateMinLiteralCount;
      const WarpU32 distance_count = (head >> 5 & 31) + kDeflateMinDistanceCount;
      const WarpU32 length_count = (head >> 10 & 15) + kDeflateMinLengthCount;
      once.break_if((literal_count > kDeflateLiteralCodes) | (distance_count > kDeflateDistanceCodes));
      const WarpU32 first = position + kDeflateDynamicHeaderBits;
      const LaneU32 bits = input_.bits(first + min(k_.lane(), length_count - 1) * kDeflateLengthSymbolBits);
      k_.sync_warp();
      lengths_.at(k_.lane()).store(k_.constant<u8>(0));
      k_.sync_warp();
      k_.if_(k_.lane() < length_count, [&] { lengths_.at(length_symbol(k_.lane())).store(trunc<u8>(bits & 7)); });
      k_.sync_warp();
      once.break_if(
          !distances.make(lengths_, k_.constant(kDeflateLengthSymbols), false,
                          [&](const LaneU32& symbol, const LaneU32& length) { return length | symbol << 8; }));
      const WarpU32 count = literal_count + distance_count;
      const WarpU32 behind = read_lengths(first + length_count * kDeflateLengthSymbolBits, count);
      once.break_if(behind == 0);
      once.break_if(broadcast(zext<u32>(lengths_.at(k_.constant(kDeflateEndOfBlock)).load())) == 0);
      once.break_if(!make(literal_count, distance_count));
      result = behind;
      once.break_();
    });
    return *result;
  }

 private:
  // The symbol whose code's length stands in place `i` (kDeflateLengthOrder).
  static LaneU32 length_symbol(const LaneU32& i) {
    using namespace dsl;
    const LaneU32 half = (i - 4) / 2;
    return select(i < 3, i + 16, select(i == 3, 0, select((i & 1) == 0, half + 8, 7 - half)));
  }

  // Reads so many lengths by the code that `distances` holds. The result is the position behind them, 0 if they are
  // bad.
  WarpU32 read_lengths(const WarpU32& position, const WarpU32& count) {
    using namespace dsl;
    for_each_lane(k_, k_.constant(kLengths), [&](const LaneU32& i) { lengths_.at(i).store(k_.constant<u8>(0)); });
    k_.sync_warp();
    LaneVar at(k_, position), done(k_, 0);
    k_.once_per_warp([&] {
      LaneVar last(k_, 0);
      k_.thread_loop([&](auto& symbols) {
        symbols.break_if(*done >= count);
        const LaneU32 bits = input_.bits(*at), entry = distances.find(bits), width = entry & 255, symbol = entry >> 8;
        at += width;
        const LaneU32 extra = bits >> width;
        k_.if_(symbol < kDeflateRepeatLength, [&] {
            last = symbol;
            lengths_.at(*done).store(trunc<u8>(symbol));
            done += 1;
          }).else_([&] {
          const LaneBool is_repeat = symbol == kDeflateRepeatLength, is_long = symbol == kDeflateLongZeros;
          const LaneU32 extra_bits = select(is_repeat, k_.constant<u32>(2), select(is_long, k_.constant<u32>(7), 3));
          const LaneU32 times = select(is_long, k_.constant<u32>(11), 3) + bit_field(extra, 0, extra_bits);
          at += extra_bits;
          // Too many make `done` larger than `count`, and a length that repeats none is as bad.
          const LaneBool is_bad = (is_repeat & (*done == 0)) | (times > count - *done);
          last = select(is_repeat, *last, 0);
          const LaneU32 end = select(is_bad, kLengths + 1, *done + times);
          k_.if_(!is_bad & is_repeat, [&] {
            k_.thread_loop([&](auto& repeats) {
              lengths_.at(*done).store(trunc<u8>(*last));
              done += 1;
              repeats.break_if(*done == end);
            });
          });
          done = end;
        });
      });
      at = select(*done == count, *at, 0);
    });
    k_.sync_warp();
    return broadcast(*at);
  }

  // Makes both codes of the lengths.
  WarpBool make(const WarpU32& literal_count, const WarpU32& distance_count) {
    using namespace dsl;
    const WarpBool has_literals =
        literals.make(lengths_, literal_count, true, [&](const LaneU32& symbol, const LaneU32& length) {
          const LaneU32 code = symbol - kDeflateFirstLength;
          // As deflate_length_code.
          const LaneU32 many = max(code >> 2, 1) - 1;
          const LaneBool is_longest = code == kDeflateLengthCodes - 1;
          const LaneU32 extra = select(is_longest, 0, many);
          const LaneU32 base =
              select(code < 8, code,
                     select(is_longest, kDeflateMaxMatch - kDeflateMinMatch, shift_left(4 + (code & 3), many & 7)));
          const LaneU32 match = (length + extra) | extra << kInflateExtraShift |
                                (base + kDeflateMinMatch) << kInflateLengthShift | kInflateIsMatch;
          const LaneU32 other =
              length | select(symbol == kDeflateEndOfBlock, kInflateIsEnd, symbol << kInflateLengthShift);
          return select(symbol <= kDeflateEndOfBlock, other, select(code < kDeflateLengthCodes, match, kInflateIsBad));
        });
    const WarpBool has_distances = distances.make(
        lengths_.at(literal_count), distance_count, true, [&](const LaneU32& symbol, const LaneU32& length) {
          // As deflate_distance_code.
          const LaneU32 extra = max(symbol >> 1, 1) - 1;
          const LaneU32 base = select(symbol < 4, symbol, (2 + (symbol & 1)) << extra) + 1;
          const LaneU32 match = (length + extra) | extra << kInflateExtraShift | base << kInflateDistanceShift;
          return select(symbol < kDeflateDistanceCodes, match, kInflateIsBad);
        });
    return has_literals & has_distances;
  }

  dsl::Kernel& k_;
  const InflateInput& input_;
  InflateShared<dsl::u8> lengths_;  // of the literals' codes, then of the distances'
  WarpVar is_fixed_;                // 1: the codes are the fixed ones
};

}  // namespace ptxkit::kernels
