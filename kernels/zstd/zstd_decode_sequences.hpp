// Decodes the sequences of blocks (RFC 8878, 3.1.1.3.2), by one warp. All lanes build the tables of one block after
// another. Where a sequence begins follows from the one before, so one lane decodes the bits of a block: the first lane
// those of the first block, and so on.
#pragma once

#include <array>

#include "kernels/zstd/zstd_decode_bits.hpp"
#include "kernels/zstd/zstd_decode_tables.hpp"
#include "kernels/zstd/zstd_decode_walk.hpp"

namespace ptxkit::kernels {

template <dsl::u32 Blocks>
class ZstdSequencesDecoder {
 public:
  static constexpr dsl::u32 kBlockStates = 2 * 512 + 256;  // 2^max_table_bits of each kind
  static constexpr dsl::u32 kCodes = 64;
  static constexpr dsl::u32 kSharedBytes = Blocks * kBlockStates * 4 + 2 * kCodes * 4;

  ZstdSequencesDecoder(dsl::Kernel& k, ZstdTableBuilder& builder)
      : k_(k),
        builder_(builder),
        states_(k.shared<dsl::u32, Blocks * kBlockStates, 16>("states").data()),
        bases_(k.shared<dsl::u32, 2 * kCodes, 16>("bases").data()),
        table_bits_{LaneVar(k, 0), LaneVar(k, 0), LaneVar(k, 0)},
        src_address_(k, 0),
        src_bytes_(k, 0),
        begin_(k, 0),
        end_(k, 0),
        literal_bytes_(k, 0),
        max_block_bytes_(k, 0),
        count_(k, 0),
        to_address_(k, 0),
        room_(k, 0),
        content_bytes_(k, 0),
        last_offsets_{LaneVar(k, 0), LaneVar(k, 0), LaneVar(k, 0)},
        is_bad_(k, 0) {
    using namespace dsl;
    for (u32 first = 0; first < kCodes; first += kWarpLanes) {
      const LaneU32 code = k.lane() + k.constant(first);
      bases_.at(code).store(length_code(0, code).base);
      bases_.at(code).template at<int64_t{kCodes}>().store(length_code(2, code).base);
    }
  }

  // Of the block of the lane.
  LaneBool is_bad() const { return *is_bad_ != 0; }
  LaneU32 content_bytes() const { return *content_bytes_; }
  // The last three offsets behind it, as they are stored.
  const std::array<LaneVar, kZstdRepeatOffsets>& last_offsets() const { return last_offsets_; }

  // Builds the tables of `block`, which becomes number `number`, below Blocks. Its sequences go to `to`, which has room
  // for so many; those behind are decoded and dropped.
  void prepare(const WarpU32& number, const ZstdSource& src, const WarpU32& src_bytes, const ZstdBlock& block,
               const ZstdSections& sections, const WarpU32& max_block_bytes, const ZstdSequences& to,
               const WarpU32& room) {
    using namespace dsl;
    const LaneBool is_its = k_.lane() == number;
    const WarpU32 literal_bytes = sections.literals.bytes();
    WarpVar bad(k_, zext<u32>(literal_bytes > max_block_bytes)), at(k_, sections.tables());
    k_.if_(sections.count() != 0, [&] { read_tables(number, src, block, sections, at, bad); });
    const auto keep = [&](auto& own, const auto& value) { own = select(is_its, value, *own); };
    keep(src_address_, src.address());
    keep(src_bytes_, src_bytes);
    keep(begin_, *at);
    keep(end_, block.end);
    keep(literal_bytes_, literal_bytes);
    keep(max_block_bytes_, max_block_bytes);
    keep(count_, sections.count());
    keep(to_address_, to.address());
    keep(room_, room);
    keep(is_bad_, *bad);
  }

  // Decodes the blocks that were prepared.
  void run() {
    using namespace dsl;
    k_.sync_warp();
    content_bytes_ = *literal_bytes_;
    for (u32 i = 0; i < kZstdRepeatOffsets; ++i)
      last_offsets_[i] = k_.constant(kZstdFromFirst | i << kZstdFirstNumberShift);
    k_.if_((*count_ != 0) & (*is_bad_ == 0), [&] { decode_bits(); });
    k_.sync_warp();
  }

 private:
  // A length is a base and the value of so many bits.
  struct LengthCode {
    LaneU32 base, bits;
  };
  // The first code, its base and the bits of the codes from there on.
  struct Step {
    dsl::u32 code, base, bits;
  };
  LengthCode length_code(dsl::u32 kind, const LaneU32& code) {
    constexpr std::array<Step, 5> kLiteral{{{0, 0, 0}, {16, 16, 1}, {20, 24, 2}, {22, 32, 3}, {24, 48, 4}}};
    constexpr std::array<Step, 6> kMatch{{{0, 3, 0}, {32, 35, 1}, {36, 43, 2}, {38, 51, 3}, {40, 67, 4}, {42, 99, 5}}};
    return kind == 0 ? listed(code, kLiteral, 25, 19, 0) : listed(code, kMatch, 43, 36, kZstdMinMatch);
  }
  // Codes from `last` on have `code - less` bits and the base 2^that and `more`.
  template <size_t Count>
  LengthCode listed(const LaneU32& code, const std::array<Step, Count>& steps, dsl::u32 last, dsl::u32 less,
                    dsl::u32 more) {
    using namespace dsl;
    const LaneU32 long_bits = code - k_.constant(less);
    LaneVar base(k_, shift_left(1, long_bits) + k_.constant(more)), bits(k_, long_bits);
    k_.if_(code < k_.constant(last), [&] {
      for (const Step& step : steps) {
        const LaneBool reaches = code >= k_.constant(step.code);
        base = select(reaches, k_.constant(step.base) + ((code - k_.constant(step.code)) << k_.constant(step.bits)),
                      *base);
        bits = select(reaches, k_.constant(step.bits), *bits);
      }
    });
    return {*base, *bits};
  }

  // Where the states of a kind begin among those of a block.
  static constexpr std::array<dsl::u32, kZstdKinds> kStatesOf{0, 512, 768};

  void read_tables(const WarpU32& number, const ZstdSource& src, const ZstdBlock& block, const ZstdSections& sections,
                   WarpVar& at, WarpVar& bad) {
    using namespace dsl;
    k_.range(k_.constant<u32>(0), u32{kZstdKinds}, 1, [&](const WarpU32& kind) {
      const WarpU32 from = of_kind(kind, block.table_at);
      const WarpBool is_own = from == block.begin;
      bad |= zext<u32>(from == 0);
      k_.if_(is_own & (*bad == 0), [&] { read_table(src, sections, kind, kind, at, block.end, bad); });
      k_.if_(!is_own & (*bad == 0), [&] {
        // The block that had the table is read from its first one on.
        const WarpU32 end = from + ((load_zstd_byte(src, from - 3) | load_zstd_byte(src, from - 2) << 8 |
                                     load_zstd_byte(src, from - 1) << 16) >>
                                    3);
        const ZstdSections others(k_, src, from, end, k_.constant(u32{kZstdMaxBlockBytes}));
        bad |= zext<u32>(others.is_bad());
        k_.if_(*bad == 0, [&] {
          WarpVar other(k_, others.tables());
          read_table(src, others, k_.constant<u32>(0), kind, other, end, bad);
        });
      });
      k_.if_(*bad == 0, [&] { build(number, kind); });
    });
  }

  // Reads the descriptions of the kinds `first` to `kind` of a section, at `at`, which goes to their end. The builder
  // has the last.
  void read_table(const ZstdSource& src, const ZstdSections& sections, const WarpU32& first, const WarpU32& kind,
                  WarpVar& at, const WarpU32& end, WarpVar& bad) {
    using namespace dsl;
    const auto constant = [&](u32 value) { return WarpU32(k_.constant(value)); };
    k_.range(first, kind + 1, 1, [&](const WarpU32& each) {
      const WarpU32 mode = sections.mode(each);
      const WarpU32 codes = of_kind(each, {constant(kZstdCodes[0]), constant(kZstdCodes[1]), constant(kZstdCodes[2])});
      k_.if_(mode == static_cast<u32>(ZstdTableMode::predefined), [&] { builder_.take_predefined(each); });
      k_.if_(mode == static_cast<u32>(ZstdTableMode::rle), [&] {
        bad |= zext<u32>(*at >= end);
        k_.if_(*bad == 0, [&] {
          const WarpU32 symbol = load_zstd_byte(src, *at);
          at += 1;
          bad = zext<u32>(symbol >= codes);
          builder_.take_single(symbol);
        });
      });
      k_.if_((mode == static_cast<u32>(ZstdTableMode::own)) & (*bad == 0), [&] {
        const WarpU32 max_bits =
            of_kind(each, {constant(kZstdKindLimits[0].max_table_bits), constant(kZstdKindLimits[1].max_table_bits),
                           constant(kZstdKindLimits[2].max_table_bits)});
        at += builder_.read(src, *at, end, max_bits, codes);
        bad = zext<u32>(builder_.is_bad());
      });
    });
  }

  static WarpU32 of_kind(const WarpU32& kind, const std::array<WarpU32, kZstdKinds>& values) {
    return select(kind == 0, values[0], select(kind == 1, values[1], values[2]));
  }

  // A state has in its lowest 9 bits the base of the next one, in 4 bits how many bits are added to that, in 6 bits the
  // code, and above how many bits are added to the code's base.
  void build(const WarpU32& number, const WarpU32& kind) {
    using namespace dsl;
    for (u32 i = 0; i < kZstdKinds; ++i) {
      table_bits_[i] = select((kind == k_.constant(i)) & (k_.lane() == number), builder_.bits(), *table_bits_[i]);
    }
    const WarpU32 first = number * kBlockStates + select(kind == 0, k_.constant(kStatesOf[0]),
                                                         select(kind == 1, k_.constant(kStatesOf[1]), kStatesOf[2]));
    builder_.build([&](const LaneU32& state, const LaneU32& code, const LaneU32& width, const LaneU32& base) {
      LaneVar extra(k_, code);
      k_.if_(kind == 0, [&] { extra = length_code(0, code).bits; });
      k_.if_(kind == 2, [&] { extra = length_code(2, code).bits; });
      states_.at(first + state).store(base | width << 9 | code << 13 | *extra << 19);
    });
  }
  struct State {
    LaneU32 base, width, code, extra;
  };
  State state_at(const LaneU32& place) {
    const LaneU32 word = states_.at(place).load();
    return {word & 511, word >> 9 & 15, word >> 13 & 63, word >> 19};
  }

  void decode_bits() {
    using namespace dsl;
    ZstdLaneWindow bits(k_, at_address<read_only, u8>(*src_address_).within(*src_bytes_));
    const auto to = at_address<global, u32, 8>(*to_address_).within(min(*room_, *count_) * 2);
    bits.open(*begin_, *end_);
    is_bad_ = zext<u32>(bits.is_bad());
    LaneVar literals(k_, 0), i(k_, 0), literal_state(k_, 0), offset_state(k_, 0), match_state(k_, 0);
    const auto first = [](const LaneU32& word, const LaneU32& count) { return ZstdLaneBits::first(word, count); };
    const LaneU32 literal_states = k_.lane() * kBlockStates, offset_states = literal_states + kStatesOf[1],
                  match_states = literal_states + kStatesOf[2];
    k_.if_(*is_bad_ == 0, [&] {
      bits.load();
      const LaneU32 fields = bits.peek(), two = *table_bits_[0] + *table_bits_[1];
      literal_state = first(fields, *table_bits_[0]);
      offset_state = first(fields << *table_bits_[0], *table_bits_[1]);
      match_state = first(fields << two, *table_bits_[2]);
      bits.skip(two + *table_bits_[2]);
      is_bad_ = zext<u32>(bits.is_past_end());
    });
    k_.thread_loop([&](auto& steps) {
      steps.break_if(*is_bad_ != 0);
      bits.load();
      const State literal = state_at(literal_states + *literal_state), offset = state_at(offset_states + *offset_state),
                  match = state_at(match_states + *match_state);
      const LaneU32 offset_value = shift_left(1, offset.code) + first(bits.peek(), offset.extra);
      const LaneU32 lengths = bits.peek_near(offset.extra);
      const LaneU32 match_length =
          bases_.at(match.code).template at<int64_t{kCodes}>().load() + first(lengths, match.extra);
      const LaneU32 literal_length = bases_.at(literal.code).load() + first(lengths << match.extra, literal.extra);
      const LaneU32 extra = offset.extra + match.extra + literal.extra;
      const LaneU32 stored = offset_of(offset_value, literal_length);
      literals += literal_length;
      content_bytes_ += match_length;
      k_.if_(*i < *room_, [&] {
        const LaneU32 length = match_length - kZstdMinMatch;
        to.at(times<2>(*i))
            .store_vector(std::array<LaneU32, 2>{
                literal_length | length << kZstdLiteralLengthBits,
                (stored & ((1u << kZstdOffsetBits) - 1)) | length >> kZstdMatchLowBits << kZstdOffsetBits});
      });
      i += 1;
      const LaneU32 fields = bits.peek_far(extra), two = literal.width + match.width;
      const LaneBool is_last = *i == *count_;
      bits.skip(extra + select(is_last, 0, two + offset.width));
      is_bad_ = zext<u32>((*literals > *literal_bytes_) | (*content_bytes_ > *max_block_bytes_) | bits.is_past_end());
      steps.break_if(is_last);
      literal_state = literal.base + first(fields, literal.width);
      match_state = match.base + first(fields << literal.width, match.width);
      offset_state = offset.base + first(fields << two, offset.width);
    });
    is_bad_ |= zext<u32>(!bits.is_at_end());
  }

  // The offset that a value codes (3.1.1.5), as it is stored.
  LaneU32 offset_of(const LaneU32& value, const LaneU32& literal_length) {
    using namespace dsl;
    auto& last = last_offsets_;
    const LaneBool is_new = value > kZstdRepeatOffsets;
    const LaneU32 index = select(is_new, 3, value - zext<u32>(literal_length != 0));
    const LaneU32 first = *last[0];
    const LaneU32 less = select((first & kZstdFromFirst) != 0, first + 1, first - 1);
    const LaneU32 repeated =
        select(index == 0, first, select(index == 1, *last[1], select(index == 2, *last[2], less)));
    const LaneU32 offset = select(is_new, min(value - kZstdRepeatOffsets, kZstdMaxStoredOffset), repeated);
    last[2] = select(index > 1, *last[1], *last[2]);
    last[1] = select(index > 0, first, *last[1]);
    last[0] = offset;
    return offset;
  }

  dsl::Kernel& k_;
  ZstdTableBuilder& builder_;
  ZstdSharedWords states_;
  ZstdSharedWords bases_;  // of the codes of literal lengths, then of match lengths
  // Of the lane's block.
  std::array<LaneVar, kZstdKinds> table_bits_;
  dsl::Var<dsl::u64, dsl::Rate::thread> src_address_;
  LaneVar src_bytes_, begin_, end_, literal_bytes_, max_block_bytes_, count_;
  dsl::Var<dsl::u64, dsl::Rate::thread> to_address_;
  LaneVar room_, content_bytes_;
  std::array<LaneVar, kZstdRepeatOffsets> last_offsets_;
  LaneVar is_bad_;
};

}  // namespace ptxkit::kernels
