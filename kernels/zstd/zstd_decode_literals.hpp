// Decodes the literals of a block (RFC 8878, 3.1.1.3.1 and 4.2), by one warp: the tree's weights, its codes as a table,
// and one stream or four, a lane for each.
#pragma once

#include "kernels/zstd/zstd_decode_bits.hpp"
#include "kernels/zstd/zstd_decode_tables.hpp"
#include "kernels/zstd/zstd_decode_walk.hpp"

namespace ptxkit::kernels {

class ZstdLiteralsDecoder {
 public:
  static constexpr dsl::u32 kWeightStates = 1u << kZstdMaxWeightBits, kCodes = 1u << kZstdMaxCodeBits;
  static constexpr dsl::u32 kWeights = 16;
  static constexpr dsl::u32 kSharedBytes = 2 * 256 + 2 * 4 * kWeights + 4 * kWeightStates + 2 * kCodes;

  ZstdLiteralsDecoder(dsl::Kernel& k, const ZstdSource& src, ZstdTableBuilder& builder)
      : k_(k),
        src_(src),
        builder_(builder),
        weights_(k.shared<dsl::u8, 256, 16>("weights").data()),
        sorted_(k.shared<dsl::u8, 256, 16>("sorted").data()),
        counts_(k.shared<dsl::u32, kWeights, 16>("weight_counts").data()),
        starts_(k.shared<dsl::u32, kWeights, 16>("weight_starts").data()),
        weight_states_(k.shared<dsl::u32, kWeightStates, 16>("weight_states").data()),
        codes_(k.shared<dsl::u16, kCodes, 16>("codes").data()),
        code_bits_(k, 0),
        is_bad_(k, 0) {}

  WarpBool is_bad() const { return *is_bad_ != 0; }

  // Decodes the literals that `head` describes to `to`, which has `room` bytes; those behind are decoded and dropped.
  void decode(const ZstdLiteralsHead& head, const WarpU32& tree_at, const ZstdRoom& to, const WarpU32& room) {
    using namespace dsl;
    is_bad_ = 0;
    k_.if_(head.is_coded(), [&] { decode_coded(head, tree_at, to, room); }).else_([&] {
      const WarpU32 step = select(head.type() == static_cast<u32>(ZstdLiteralsType::raw), k_.constant<u32>(1), 0);
      for_each_lane(k_, min(head.bytes(), room),
                    [&](const LaneU32& i) { to.at(i).store(src_.at(head.coded_begin() + i * step).load()); });
    });
    k_.sync_warp();
  }

 private:
  // Leaves `loop`, and the literals are bad, if the condition holds.
  template <class Loop>
  void fail_if(Loop& loop, const WarpBool& condition) {
    k_.if_(condition, [&] { is_bad_ = k_.constant<dsl::u32>(1); });
    loop.break_if(condition);
  }

  void decode_coded(const ZstdLiteralsHead& head, const WarpU32& tree_at, const ZstdRoom& to, const WarpU32& room) {
    using namespace dsl;
    k_.warp_loop([&](auto& once) {
      fail_if(once, tree_at == 0);
      // The block that has the tree ends where its header says, within the item: the walk has passed it.
      const WarpU32 tree_block_bytes = (load_zstd_byte(src_, tree_at - 3) | load_zstd_byte(src_, tree_at - 2) << 8 |
                                        load_zstd_byte(src_, tree_at - 1) << 16) >>
                                       3;
      const ZstdLiteralsHead tree(k_, src_, tree_at, tree_at + tree_block_bytes);
      const WarpU32 tree_bytes = read_codes(tree.coded_begin(), tree.coded_end());
      once.break_if(is_bad());
      const WarpU32 streams = head.coded_begin() + select(head.has_tree(), tree_bytes, 0);
      const WarpU32 end = head.coded_end(), size = head.bytes();
      fail_if(once, !head.is_single() & ((size < kZstdMinFourStreamBytes) | (end - streams < kZstdJumpBytes)));
      // Lane i has stream i.
      LaneVar begin(k_, streams), stream_end(k_, end), first(k_, 0), bytes(k_, size);
      k_.if_(!head.is_single(), [&] {
        const WarpU32 part = (size + (kZstdStreams - 1)) / kZstdStreams;
        WarpVar at(k_, streams + kZstdJumpBytes);
        for (u32 i = 0; i < kZstdStreams; ++i) {
          const WarpU32 jump = i + 1 == kZstdStreams ? WarpU32(end - *at)
                                                     : load_zstd_byte(src_, streams + k_.constant(2 * i)) |
                                                           load_zstd_byte(src_, streams + k_.constant(2 * i + 1)) << 8;
          k_.if_(jump > end - *at, [&] { is_bad_ = k_.constant<u32>(1); });
          const WarpU32 next = *at + min(jump, end - *at);
          const LaneBool is_its = k_.lane() == k_.constant(i);
          begin = select(is_its, *at, *begin);
          stream_end = select(is_its, next, *stream_end);
          at = next;
        }
        first = min(k_.lane(), kZstdStreams - 1) * part;
        bytes = select(k_.lane() == kZstdStreams - 1, size - part * (kZstdStreams - 1), part);
      });
      once.break_if(is_bad());
      const LaneBool has_stream = k_.lane() < select(head.is_single(), k_.constant<u32>(1), kZstdStreams);
      LaneVar bad(k_, 0);
      k_.if_(has_stream, [&] {
        ZstdLaneBits bits(k_, src_);
        bits.open(*begin, *stream_end);
        bad = zext<u32>(bits.is_bad());
        k_.if_(!bits.is_bad(), [&] {
          decode_stream(bits, to, *first, *bytes, room);
          bad = zext<u32>(!bits.is_at_end());
        });
      });
      is_bad_ = zext<u32>(any(*bad != 0));
      once.break_();
    });
  }

  void decode_stream(ZstdLaneBits& bits, const ZstdRoom& to, const LaneU32& first, const LaneU32& bytes,
                     const WarpU32& room) {
    using namespace dsl;
    const LaneU32 shift = 32 - *code_bits_, end = first + bytes, stored_end = min(end, room);
    const auto code_of = [&](const LaneU32& next) { return zext<u32>(codes_.at(next >> shift).load()); };
    LaneVar at(k_, first);
    const auto single = [&] {
      const LaneU32 code = code_of(bits.peek());
      bits.skip(code >> 8);
      k_.if_(*at < stored_end, [&] { to.at(*at).store(trunc<u8>(code)); });
      at += 1;
    };
    // Words of four, between single bytes.
    const LaneU32 skew = (0 - trunc<u32>(to.address())) & 3;
    const LaneU32 words_begin = min(first + ((skew - first) & 3), end);
    k_.thread_loop([&](auto& bytes_before) {
      bytes_before.break_if(*at == words_begin);
      single();
    });
    k_.thread_loop([&](auto& words) {
      words.break_if(*at + 4 > stored_end);
      LaneVar word(k_, 0);
      // Two codes have at most 22 bits.
      unrolled<2>([&](auto half) {
        const LaneU32 next = bits.peek(), code = code_of(next), width = code >> 8, second = code_of(next << width);
        bits.skip(width + (second >> 8));
        word |= ((code & 0xFF) | (second & 0xFF) << 8) << 16 * half;
      });
      to.at(*at).align_down<4>().as<u32>().store(*word);
      at += 4;
    });
    k_.thread_loop([&](auto& bytes_behind) {
      bytes_behind.break_if(*at >= end);
      single();
    });
  }

  // Reads the tree at `begin` and returns the length of its description.
  WarpU32 read_codes(const WarpU32& begin, const WarpU32& end) {
    using namespace dsl;
    WarpVar bytes(k_, 0);
    k_.warp_loop([&](auto& once) {
      fail_if(once, begin >= end);
      const WarpU32 head = load_zstd_byte(src_, begin);
      const WarpBool is_direct = head > kZstdDirectWeightsBase;
      WarpVar count(k_, head - kZstdDirectWeightsBase);
      bytes = select(is_direct, (*count + 1) / 2, head);
      fail_if(once, end - begin - 1 < *bytes);
      for_each_lane(k_, k_.constant<u32>(256), [&](const LaneU32& i) { weights_.at(i).store(k_.constant<u8>(0)); });
      k_.sync_warp();
      k_.if_(is_direct, [&] {
          for_each_lane(k_, *count, [&](const LaneU32& i) {
            const LaneU32 pair = zext<u32>(src_.at(begin + 1 + i / 2).load());
            weights_.at(i).store(trunc<u8>(select((i & 1) == 0, pair >> 4, pair & 15)));
          });
        }).else_([&] { count = coded_weights(begin + 1, begin + 1 + *bytes); });
      bytes += 1;
      once.break_if(is_bad());
      k_.sync_warp();
      make_codes(*count);
      once.break_();
    });
    return *bytes;
  }

  // Weights by FSE: two states that take turns (4.2.1.2). Returns their number.
  WarpU32 coded_weights(const WarpU32& begin, const WarpU32& end) {
    using namespace dsl;
    WarpVar result(k_, 0);
    k_.warp_loop([&](auto& once) {
      const WarpU32 table_bytes =
          builder_.read(src_, begin, end, k_.constant(u32{kZstdMaxWeightBits}), k_.constant<u32>(kZstdMaxWeights + 1));
      fail_if(once, builder_.is_bad());
      builder_.build([&](const LaneU32& state, const LaneU32& symbol, const LaneU32& width, const LaneU32& base) {
        weight_states_.at(state).store(symbol | width << 8 | base << 16);
      });
      LaneVar count(k_, 0), bad(k_, 0);
      k_.once_per_warp([&] {
        ZstdLaneBits bits(k_, src_);
        bits.open(begin + table_bytes, end);
        bad = zext<u32>(bits.is_bad());
        LaneVar state(k_, 0), other(k_, 0);
        k_.if_(*bad == 0, [&] {
          state = bits.read(builder_.bits());
          other = bits.read(builder_.bits());
        });
        k_.thread_loop([&](auto& weights) {
          bad |= zext<u32>(*count + 2 > kZstdMaxWeights);
          weights.break_if(*bad != 0);
          const LaneU32 entry = weight_states_.at(*state).load();
          weights_.at(*count).store(trunc<u8>(entry));
          count += 1;
          state = (entry >> 16) + bits.read(entry >> 8 & 0xFF);
          const LaneU32 next = *other;
          other = *state;
          state = next;
          weights.break_if(bits.is_past_end());
        });
        k_.if_(*bad == 0, [&] {
          weights_.at(*count).store(trunc<u8>(weight_states_.at(*state).load()));
          count += 1;
        });
      });
      fail_if(once, broadcast(*bad) != 0);
      result = broadcast(*count);
      once.break_();
    });
    return *result;
  }

  // Makes the table of codes. The weights behind the `count` ones are 0; the last follows from the others.
  void make_codes(const WarpU32& count) {
    using namespace dsl;
    k_.warp_loop([&](auto& once) {
      LaneVar share(k_, 0), longest(k_, 0);
      for_each_lane(k_, count, [&](const LaneU32& i) {
        const LaneU32 weight = zext<u32>(weights_.at(i).load());
        longest = max(*longest, weight);
        share += shift_left(1, min(weight, 16)) >> 1;
      });
      const WarpU32 sum = reduce_add(*share);
      fail_if(once, (sum == 0) | (reduce_max(*longest) > kZstdMaxCodeBits));
      code_bits_ = 32 - clz(sum);
      const WarpU32 missing = shift_left(1, *code_bits_) - sum;
      fail_if(once, (*code_bits_ > kZstdMaxCodeBits) | ((missing & (missing - 1)) != 0));
      k_.if_(k_.lane() < kWeights, [&] { counts_.at(k_.lane()).store(k_.constant<u32>(0)); });
      k_.once_per_warp([&] { weights_.at(count).store(trunc<u8>(32 - clz(missing))); });
      k_.sync_warp();
      for_each_lane(k_, count + 1, [&](const LaneU32& i) {
        atomic_add(counts_.at(zext<u32>(weights_.at(i).load())), k_.constant<u32>(1), Order::relaxed, Scope::cta);
      });
      k_.sync_warp();
      const WarpU32 deepest = broadcast(counts_.at<1>().load());
      fail_if(once, (deepest < 2) | ((deepest & 1) != 0));
      // Symbols in the order of their weights. Those of weight 0 come last, and are not used.
      const LaneBool is_weight = (k_.lane() != 0) & (k_.lane() < kWeights);
      const LaneU32 own = select(is_weight, counts_.at(k_.lane() & (kWeights - 1)).load(), 0);
      const LaneU32 start = exclusive_sum(own);
      const WarpU32 total = reduce_add(own);
      k_.if_(k_.lane() < kWeights, [&] { starts_.at(k_.lane()).store(select(k_.lane() == 0, total, start)); });
      k_.sync_warp();
      k_.range(0, count + 1, kWarpLanes, [&](const WarpU32& first) {
        const LaneU32 i = first + k_.lane();
        const LaneBool exists = i <= count;
        const LaneU32 weight = zext<u32>(weights_.at(i & 255).load());
        const LaneU32 same = match_any(select(exists, weight, i + kWeights));
        const LaneU32 place = starts_.at(weight & (kWeights - 1)).load() + popc(same & k_.lanes_below());
        k_.sync_warp();  // every lane has read before one writes
        k_.if_(exists, [&] {
          sorted_.at(place).store(trunc<u8>(i));
          k_.if_((same >> k_.lane()) == 1, [&] { starts_.at(weight).store(place + 1); });
        });
        k_.sync_warp();
      });
      // Those of weight w have 2^(w - 1) entries each. `starts_` has become where they end.
      WarpVar entry(k_, 0);
      k_.range(k_.constant<u32>(1), *code_bits_ + 1, 1, [&](const WarpU32& weight) {
        const WarpU32 number = broadcast(counts_.at(weight).load());
        const WarpU32 from = broadcast(starts_.at(weight).load()) - number;
        const WarpU32 width = *code_bits_ + 1 - weight;
        for_each_lane(k_, number << (weight - 1), [&](const LaneU32& i) {
          const LaneU32 symbol = zext<u32>(sorted_.at(from + (i >> (weight - 1))).load());
          codes_.at(*entry + i).store(trunc<u16>(symbol | width << 8));
        });
        entry += number << (weight - 1);
      });
      k_.sync_warp();
      once.break_();
    });
  }

  dsl::Kernel& k_;
  ZstdSource src_;
  ZstdTableBuilder& builder_;
  ZstdSharedBytes weights_, sorted_;
  ZstdSharedWords counts_, starts_;  // of each weight
  ZstdSharedWords weight_states_;    // symbol, from bit 8 on the bits to read, from bit 16 on the base
  dsl::Ptr<dsl::shared, dsl::u16, 16, dsl::Rate::warp> codes_;  // symbol, and from bit 8 on its bits
  WarpVar code_bits_, is_bad_;
};

}  // namespace ptxkit::kernels
