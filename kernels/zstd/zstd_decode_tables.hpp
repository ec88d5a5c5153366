// FSE tables of a decoder (RFC 8878, 4.1.1), by one warp: the description of a distribution, and its states.
#pragma once

#include "kernels/entropy/lane_format.hpp"
#include "kernels/transform.hpp"
#include "kernels/zstd/zstd_decode_batch.hpp"

namespace ptxkit::kernels {

using ZstdSharedBytes = dsl::Ptr<dsl::shared, dsl::u8, 16, dsl::Rate::warp>;
using ZstdSharedWords = dsl::Ptr<dsl::shared, dsl::u32, 16, dsl::Rate::warp>;

class ZstdTableBuilder {
 public:
  static constexpr dsl::u32 kSymbols = 64;  // that occur in a table: of 2^6 states, or among 53 symbols
  static constexpr dsl::u32 kStates = 1u << kZstdMaxTableBits;
  static constexpr dsl::u32 kSharedBytes = 2 * 4 * kSymbols + 2 * kStates;

  explicit ZstdTableBuilder(dsl::Kernel& k)
      : k_(k),
        listed_(k.shared<dsl::u32, kSymbols, 16>("table_symbols").data()),
        seen_(k.shared<dsl::u32, kSymbols, 16>("table_seen").data()),
        slots_(k.shared<dsl::u8, kStates, 16>("table_slots").data()),
        places_(k.shared<dsl::u8, kStates, 16>("table_places").data()),
        count_(k, 0),
        bits_(k, 0),
        is_bad_(k, 0) {}

  WarpBool is_bad() const { return *is_bad_ != 0; }
  WarpU32 bits() const { return *bits_; }

  // Takes the distribution of one symbol and one state.
  void take_single(const WarpU32& symbol) {
    k_.sync_warp();
    k_.once_per_warp([&] { listed_.store(symbol | 1 << 16); });
    count_ = 1;
    bits_ = 0;
    is_bad_ = 0;
    k_.sync_warp();
  }
  // Takes the predefined distribution of a kind.
  void take_predefined(const WarpU32& kind) {
    using namespace dsl;
    const auto of_kind = [&](u32 a, u32 b, u32 c) {
      return select(kind == 0, k_.constant(a), select(kind == 1, k_.constant(b), k_.constant(c)));
    };
    k_.sync_warp();
    count_ = of_kind(kZstdKindLimits[0].symbols, kZstdKindLimits[1].symbols, kZstdKindLimits[2].symbols);
    bits_ = of_kind(kZstdKindLimits[0].predefined_bits, kZstdKindLimits[1].predefined_bits,
                    kZstdKindLimits[2].predefined_bits);
    is_bad_ = 0;
    for (u32 half = 0; half < 2; ++half) {
      const LaneU32 symbol = k_.lane() + k_.constant(half * kWarpLanes);
      // Eight frequencies a word, four bits each; 15 is -1.
      LaneVar packed(k_, 0);
      for (u32 word = 4 * half; word < 4 * half + 4; ++word) {
        packed = select(symbol >> 3 == k_.constant(word),
                        of_kind(predefined_word(0, word), predefined_word(1, word), predefined_word(2, word)), *packed);
      }
      const LaneU32 frequency = *packed >> (symbol & 7) * 4 & 15;
      listed_.at(symbol).store(symbol | select(frequency == 15, 0xFFFF, frequency) << 16);
    }
    k_.sync_warp();
  }
  // Reads the description at `at`, in a section that ends at `end`, and returns its length.
  WarpU32 read(const ZstdSource& src, const WarpU32& at, const WarpU32& end, const WarpU32& max_bits,
               const WarpU32& symbols) {
    using namespace dsl;
    k_.sync_warp();
    LaneVar bits(k_, 0), read_bits(k_, 4), count(k_, 0), bad(k_, 0);
    k_.once_per_warp([&] {
      // The bits from `read_bits` on, at least 17; zeros behind the end.
      const auto peek = [&] {
        const LaneU32 from = at + (*read_bits >> 3);
        LaneVar value(k_, 0);
        unrolled<3>([&](auto i) {
          k_.if_(from + u32{i} < end, [&] { value |= zext<u32>(src.at(from + u32{i}).load()) << 8 * i; });
        });
        return *value >> (*read_bits & 7);
      };
      read_bits = 0;
      bits = (peek() & 15) + kZstdMinTableBits;
      read_bits = 4;
      bad = zext<u32>(*bits > max_bits);
      LaneVar left(k_, (shift_left(1, min(*bits, 9))) + 1), symbol(k_, 0);
      k_.thread_loop([&](auto& steps) {
        steps.break_if((*left <= 1) | (*bad != 0));
        bad = zext<u32>(*symbol >= symbols);
        steps.break_if(*bad != 0);
        const LaneU32 word = peek(), width = 32 - clz(*left);
        const LaneU32 half = shift_left(1, width - 1), short_count = half * 2 - 1 - *left;
        const LaneU32 low = word & (half - 1), whole = word & (half * 2 - 1);
        const LaneBool is_short = low < short_count;
        const LaneU32 value = select(is_short, low, select(whole >= half, whole - short_count, whole));
        read_bits += width - zext<u32>(is_short);
        k_.if_(value != 1, [&] {
          listed_.at(*count).store(*symbol | (value - 1) << 16);
          count += 1;
        });
        symbol += 1;
        left -= select(value == 0, 1, value - 1);
        k_.if_(value == 1, [&] {
          k_.thread_loop([&](auto& zeros) {
            const LaneU32 more = peek() & 3;
            read_bits += 2;
            symbol += more;
            bad = zext<u32>(*symbol > symbols);
            zeros.break_if((more != 3) | (*bad != 0));
          });
        });
      });
    });
    k_.sync_warp();
    const WarpU32 bytes = (broadcast(*read_bits) + 7) / 8;
    count_ = broadcast(*count);
    bits_ = broadcast(*bits);
    is_bad_ = zext<u32>((broadcast(*bad) != 0) | (bytes > end - at));
    return bytes;
  }

  // Calls store(state, symbol, bits, base) for each state; the next state is `base` and the value of so many bits.
  template <class Store>
  void build(const Store& store) {
    using namespace dsl;
    const WarpU32 states = shift_left(1, *bits_);
    const WarpU32 step = (states >> 1) + (states >> 3) + 3;
    // Where the slots of each symbol begin. A symbol of -1 has a state at the end, and no slot.
    WarpVar placed(k_, 0), rare(k_, 0);
    k_.range(0, *count_, kWarpLanes, [&](const WarpU32& first) {
      const LaneU32 i = first + k_.lane();
      const LaneU32 frequency = select(i < *count_, listed_.at(i & (kSymbols - 1)).load() >> 16, 0);
      const LaneBool is_rare = frequency == 0xFFFF;
      const LaneU32 slots = select(is_rare, 0, frequency), sum = inclusive_sum(slots);
      const WarpU32 rare_lanes = ballot(is_rare);
      k_.if_(i < *count_, [&] { seen_.at(i).store(*placed + sum - slots); });
      k_.if_(is_rare,
             [&] { places_.at(states - 1 - *rare - popc(rare_lanes & k_.lanes_below())).store(trunc<u8>(i)); });
      placed += shuffle(sum, kWarpLanes - 1);
      rare += popc(rare_lanes);
    });
    const WarpU32 common = states - *rare;
    k_.sync_warp();
    k_.range(0, *count_, 1, [&](const WarpU32& i) {
      const WarpU32 frequency = broadcast(listed_.at(i).load()) >> 16, begin = broadcast(seen_.at(i).load());
      for_each_lane(k_, select(frequency == 0xFFFF, 0, frequency),
                    [&](const LaneU32& slot) { slots_.at(begin + slot).store(trunc<u8>(i)); });
    });
    k_.sync_warp();
    WarpVar taken(k_, 0);
    k_.range(0, states, kWarpLanes, [&](const WarpU32& first) {
      const LaneU32 number = first + k_.lane(), place = number * step & (states - 1);
      const LaneBool is_common = (number < states) & (place < common);
      const WarpU32 lanes = ballot(is_common);
      k_.if_(is_common, [&] { places_.at(place).store(slots_.at(*taken + popc(lanes & k_.lanes_below())).load()); });
      taken += popc(lanes);
    });
    unrolled<kSymbols / kWarpLanes>(
        [&](auto i) { seen_.at(k_.lane() + u32{i} * kWarpLanes).store(k_.constant<u32>(0)); });
    k_.sync_warp();
    k_.range(0, states, kWarpLanes, [&](const WarpU32& first) {
      const LaneU32 state = first + k_.lane();
      const LaneBool exists = state < states;
      const LaneU32 i = select(exists, zext<u32>(places_.at(state & (kStates - 1)).load()), state + kSymbols);
      const LaneU32 same = match_any(i), entry = i & (kSymbols - 1);
      const LaneU32 before = seen_.at(entry).load() + popc(same & k_.lanes_below());
      k_.sync_warp();  // every lane has read before one writes
      k_.if_(exists & ((same >> k_.lane()) == 1), [&] { seen_.at(entry).store(before + 1); });
      k_.sync_warp();
      k_.if_(exists, [&] {
        const LaneU32 word = listed_.at(entry).load(), frequency = word >> 16;
        const LaneU32 x = before + select(frequency == 0xFFFF, 1, frequency);
        const LaneU32 width = *bits_ + clz(x) - 31;
        store(state, word & 0xFFFF, width, (x << width) - states);
      });
    });
    k_.sync_warp();
  }

 private:
  static constexpr dsl::u32 predefined_word(dsl::u32 kind, dsl::u32 word) {
    dsl::u32 packed = 0;
    for (dsl::u32 i = 0; i < 8 && word * 8 + i < kZstdMaxSymbols; ++i)
      packed |= static_cast<dsl::u32>(kZstdPredefined[kind][word * 8 + i] & 15) << 4 * i;
    return packed;
  }

  dsl::Kernel& k_;
  ZstdSharedWords listed_;  // the symbols that occur, each with its frequency from bit 16 on
  ZstdSharedWords seen_;
  ZstdSharedBytes slots_, places_;  // entries of `listed_`
  WarpVar count_, bits_, is_bad_;
};

}  // namespace ptxkit::kernels
