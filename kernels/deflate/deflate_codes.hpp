// The codes of a block, by one warp: their lengths from the counts of the tokens, how a dynamic block has them, which
// type of block is smallest, and the tables from which the tokens are written. deflate_block_reference.cpp has the
// rules.
#pragma once

#include "kernels/deflate/deflate_arrays.hpp"
#include "kernels/deflate/deflate_tokens.hpp"

namespace ptxkit::kernels {

class DeflateCodes {
 public:
  DeflateCodes(dsl::Kernel& k, const DeflateArrays& arrays)
      : k_(k),
        arrays_(arrays),
        literal_count_(k, 0),
        distance_count_(k, 0),
        field_count_(k, 0),
        length_count_(k, 0),
        ordered_length_(k, 0),
        own_bits_(k, 0),
        fixed_bits_(k, 0) {}

  // Makes the lengths of own codes. Then own_bits() and fixed_bits() say how large the block is with each.
  void make() {
    using namespace dsl;
    k_.once_per_warp([&] { arrays_.counts().at<kDeflateEndOfBlock>().store(k_.constant<u32>(1)); });
    k_.sync_warp();
    own_bits_ = k_.constant(kDeflateBlockHeaderBits);
    fixed_bits_ = k_.constant(kDeflateBlockHeaderBits);
    literal_count_ = max(
        make_lengths<kDeflateLiteralSymbols>(arrays_.literal_workspace(), 0, literal_extra_bits, fixed_literal_bits),
        kDeflateMinLiteralCount);
    distance_count_ = max(make_lengths<kDeflateDistanceSymbols>(
                              arrays_.distance_workspace(), kDeflateLiteralSymbols, distance_extra_bits,
                              [&](const LaneU32&) { return LaneU32(k_.constant(kDeflateFixedDistanceBits)); }),
                          kDeflateMinDistanceCount);
    list_fields();
    make_length_codes();
  }
  WarpU32 own_bits() const { return *own_bits_; }
  WarpU32 fixed_bits() const { return *fixed_bits_; }

  // Makes the tables of token_codes(), distance_codes() and length_symbol_codes() for own or fixed codes.
  void make_tables(const WarpBool& is_fixed) {
    using namespace dsl;
    const auto lengths = arrays_.lengths();
    const auto load = [&](auto& values, u32 first, const auto& fixed) {
      using Values = std::remove_reference_t<decltype(values)>;
      for_lane_symbols<Values::kCount * kWarpLanes>(k_, [&](auto j, const LaneU32& s) {
        values[j] = select(is_fixed, fixed(s), zext<u32>(lengths.at(s + k_.constant(first)).load()));
      });
    };
    arrays_.length_symbol_codes().at(k_.lane()).store(k_.constant<u32>(0));  // not all have a code
    k_.sync_warp();
    LaneSymbolsOf<kDeflateLiteralSymbols> literals(k_);
    load(literals, 0, fixed_literal_bits);
    for_codes(literals, kDeflateMaxCodeBits, [&](const LaneU32& s, const LaneU32& code, const WarpU32& length) {
      const LaneU32 entry = code | length << kBitsShift;
      k_.if_(s < kDeflateEndOfBlock, [&] { arrays_.token_codes().at(s).store(entry); }).else_([&] {
        arrays_.length_symbol_codes().at(s - kDeflateEndOfBlock).store(entry);
      });
    });
    LaneSymbolsOf<kDeflateDistanceSymbols> distances(k_);
    load(distances, kDeflateLiteralSymbols,
         [&](const LaneU32&) { return LaneU32(k_.constant(kDeflateFixedDistanceBits)); });
    for_codes(distances, kDeflateMaxCodeBits, [&](const LaneU32& s, const LaneU32& code, const WarpU32& length) {
      arrays_.distance_codes().at(s).store(code | length << kBitsShift);
    });
    k_.sync_warp();
    for_each_lane(k_, k_.constant(kDeflateMatchToken), [&](const LaneU32& value) {
      const auto [code, extra_bits] = deflate_lane_code_of_length(value);
      const LaneU32 entry = arrays_.length_symbol_codes().at(code + 1).load();
      const LaneU32 extra = value & ((1 << extra_bits) - 1);
      arrays_.token_codes()
          .at(value + kDeflateMatchToken)
          .store(entry + (extra << (entry >> kBitsShift)) + (extra_bits << kBitsShift));
    });
    k_.sync_warp();
  }
  // An entry of those tables: the bits, and from here on the number of them.
  static constexpr uint32_t kBitsShift = 20;
  static constexpr uint32_t kBitsMask = (1u << kBitsShift) - 1;

  // Writes what a dynamic block has before its tokens.
  void write_header(DeflateBits& bits) {
    using namespace dsl;
    const LaneBool is_first = k_.lane() == 0, has_length = k_.lane() < *length_count_;
    constexpr u32 kFixedBits = kDeflateBlockHeaderBits + kDeflateDynamicHeaderBits;
    const WarpU32 head = k_.constant(1 | static_cast<u32>(DeflateBlockType::dynamic) << 1) |
                         (*literal_count_ - kDeflateMinLiteralCount) << kDeflateBlockHeaderBits |
                         (*distance_count_ - kDeflateMinDistanceCount)
                             << (kDeflateBlockHeaderBits + kDeflateLiteralCountBits) |
                         (*length_count_ - kDeflateMinLengthCount)
                             << (kDeflateBlockHeaderBits + kDeflateLiteralCountBits + kDeflateDistanceCountBits);
    bits.turn(
        select(is_first, k_.constant(kFixedBits), 0) + select(has_length, k_.constant(kDeflateLengthSymbolBits), 0),
        [&] {
          k_.if_(is_first, [&] { bits.put(head, LaneU32(k_.constant(kFixedBits))); });
          k_.if_(has_length, [&] { bits.put(*ordered_length_, LaneU32(k_.constant(kDeflateLengthSymbolBits))); });
        });
    k_.range(0, *field_count_, kWarpLanes, [&](const WarpU32& first) {
      const LaneU32 i = first + k_.lane();
      LaneVar field(k_, 0), count(k_, 0);
      k_.if_(i < *field_count_, [&] {
        const LaneU32 symbol_and_extra = zext<u32>(arrays_.length_fields().at(i).load());
        const LaneU32 symbol = symbol_and_extra & 0xFF, code = arrays_.length_codes().at(symbol).load();
        field = (code & 0xFFFF) | symbol_and_extra >> 8 << (code >> 16);
        count = (code >> 16) + repeat_bits(symbol);
      });
      bits.turn(*count, [&] { bits.put(*field, *count); });
    });
  }

 private:
  static LaneU32 literal_extra_bits(const LaneU32& s) {
    using namespace dsl;
    const LaneU32 code = s - kDeflateFirstLength;
    return select(code - 8 < kDeflateLengthCodes - 9, code / 4 - 1, 0);
  }
  static LaneU32 distance_extra_bits(const LaneU32& s) { return dsl::max(s / 2, 1) - 1; }
  static LaneU32 fixed_literal_bits(const LaneU32& s) {
    using namespace dsl;
    return select(s < 144, 8, select(s < 256, 9, select(s < 280, LaneU32(s * 0 + 7), 8)));
  }
  LaneU32 repeat_bits(const LaneU32& symbol) {
    using namespace dsl;
    return select(symbol == kDeflateLongZeros, 7,
                  select(symbol < kDeflateRepeatLength, 0, symbol - (kDeflateRepeatLength - 2)));
  }

  // Makes the lengths of a code, stores them from `first` on, and adds the bits of its symbols. Returns the number of
  // lengths without the zeros behind the last.
  template <uint32_t Symbols, class Extra, class Fixed>
  WarpU32 make_lengths(const CodeLengthWorkspace& workspace, uint32_t first, const Extra& extra, const Fixed& fixed) {
    using namespace dsl;
    LaneSymbolsOf<Symbols> lengths(k_);
    CodeLengths<kDeflateMaxCodeBits, Symbols>(k_, workspace).make(lengths);
    LaneVar own(k_, 0), by_fixed(k_, 0), end(k_, 0);
    for_lane_symbols<Symbols>(k_, [&](auto j, const LaneU32& s) {
      arrays_.lengths().at(s + k_.constant(first)).store(trunc<u8>(*lengths[j]));
      const LaneU32 count = workspace.counts.at(s).load(), extra_bits = extra(s);
      own += count * (*lengths[j] + extra_bits);
      by_fixed += count * (fixed(s) + extra_bits);
      end = select(*lengths[j] == 0, *end, s + 1);
    });
    own_bits_ += reduce_add(*own);
    fixed_bits_ += reduce_add(*by_fixed);
    k_.sync_warp();
    return reduce_max(*end);
  }

  // Lists the fields of the lengths, and counts their symbols, in one lane: where a run begins depends on the one
  // before.
  void list_fields() {
    using namespace dsl;
    arrays_.length_code_counts().at(k_.lane()).store(k_.constant<u32>(0));
    k_.sync_warp();
    LaneVar listed(k_, 0);
    k_.once_per_warp([&] {
      const LaneU32 total = *literal_count_ + *distance_count_, literals = *literal_count_;
      const auto length_at = [&](const LaneU32& i) {
        const LaneU32 of_distances = i + (kDeflateLiteralSymbols - literals);
        return zext<u32>(arrays_.lengths().at(select(i < literals, i, of_distances)).load());
      };
      const auto add = [&](const LaneU32& symbol, const LaneU32& extra) {
        arrays_.length_fields().at(*listed).store(trunc<u16>(symbol | extra << 8));
        listed += 1;
        const auto count = arrays_.length_code_counts().at(symbol);
        count.store(count.load() + 1);
      };
      LaneVar at(k_, 0), length(k_, length_at(k_.constant<u32>(0)));
      k_.thread_loop([&](auto& runs) {
        LaneVar run(k_, 1), next(k_, 0);
        k_.thread_loop([&](auto& equal) {
          equal.break_if(*at + *run == total);
          next = length_at(*at + *run);
          equal.break_if(*next != *length);
          run += 1;
        });
        at += *run;
        const LaneBool is_zero = *length == 0;
        k_.if_(!is_zero, [&] {
          add(*length, k_.constant<u32>(0));
          run -= 1;
        });
        k_.thread_loop([&](auto& repeats) {
          repeats.break_if(*run < 3);
          const LaneBool is_long = *run >= 11;
          const LaneU32 most = select(is_zero, select(is_long, k_.constant<u32>(138), 10), 6);
          const LaneU32 count = min(*run, most);
          const LaneU32 zeros = select(is_long, k_.constant(kDeflateLongZeros), kDeflateShortZeros);
          add(select(is_zero, zeros, kDeflateRepeatLength), count - select(is_zero & is_long, k_.constant<u32>(11), 3));
          run -= count;
        });
        k_.thread_loop([&](auto& singles) {
          singles.break_if(*run == 0);
          add(*length, k_.constant<u32>(0));
          run -= 1;
        });
        length = *next;
        runs.break_if(*at == total);
      });
    });
    k_.sync_warp();
    field_count_ = broadcast(*listed);
  }

  // Makes the code of the lengths' symbols.
  void make_length_codes() {
    using namespace dsl;
    LaneSymbolsOf<kDeflateLengthCodeSymbols> lengths(k_);
    CodeLengths<kDeflateMaxLengthSymbolBits, kDeflateLengthCodeSymbols>(k_, arrays_.length_code_workspace())
        .make(lengths);
    const LaneU32 own = *lengths[0];
    const LaneU32 bits = arrays_.length_code_counts().at(k_.lane()).load() * (own + repeat_bits(k_.lane()));
    LaneVar symbol(k_, k_.constant(kDeflateLengthSymbols));  // of those in the order of the format; it has no code
    for (u32 i = 0; i < kDeflateLengthSymbols; ++i)
      symbol = select(k_.lane() == k_.constant(i), k_.constant(u32{kDeflateLengthOrder[i]}), *symbol);
    ordered_length_ = shuffle(own, *symbol);
    length_count_ = max(32 - clz(ballot(*ordered_length_ != 0)), kDeflateMinLengthCount);
    own_bits_ += reduce_add(bits) + *length_count_ * kDeflateLengthSymbolBits + kDeflateDynamicHeaderBits;
    for_codes(lengths, kDeflateMaxLengthSymbolBits, [&](const LaneU32& s, const LaneU32& code, const WarpU32& length) {
      arrays_.length_codes().at(s).store(code | length << 16);
    });
    k_.sync_warp();
  }

  // Calls on_code(symbol, code, length) for the lane's symbols that have a code, whose first bit is lowest.
  template <uint32_t Symbols, class OnCode>
  void for_codes(LaneSymbolsOf<Symbols>& lengths, uint32_t max_bits, const OnCode& on_code) {
    using namespace dsl;
    WarpVar next(k_, 0);
    k_.range(k_.constant<u32>(1), max_bits + 1, 1, [&](const WarpU32& length) {
      LaneVar own(k_, 0);
      unrolled<LaneSymbolsOf<Symbols>::kCount>([&](auto j) { own += zext<u32>(*lengths[j] == length); });
      const LaneU32 sum = inclusive_sum(*own);
      LaneVar code(k_, *next + sum - *own);
      for_lane_symbols<Symbols>(k_, [&](auto j, const LaneU32& s) {
        k_.if_(*lengths[j] == length, [&] {
          on_code(s, brev(*code) >> (32 - length), length);
          code += 1;
        });
      });
      next = (*next + shuffle(sum, kWarpLanes - 1)) << 1;
    });
  }

  dsl::Kernel& k_;
  DeflateArrays arrays_;
  WarpVar literal_count_, distance_count_, field_count_, length_count_;
  LaneVar ordered_length_;  // of the code of a length's symbol, in the order of the format
  WarpVar own_bits_, fixed_bits_;
};

}  // namespace ptxkit::kernels
