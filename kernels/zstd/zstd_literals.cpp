// The literals section of a block, by one warp: histogram, code lengths, the description of their weights, and the bits
// of one stream or four, to each of which lanes with consecutive literals contribute.
#include "kernels/abi.hpp"
#include "kernels/entropy/frequencies.hpp"
#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/fse_tables.hpp"
#include "kernels/entropy/huffman_lengths.hpp"
#include "kernels/kernels.hpp"
#include "kernels/transform.hpp"
#include "kernels/transform_abi.hpp"
#include "kernels/warp_item.hpp"
#include "kernels/zstd/zstd_format.hpp"
#include "kernels/zstd/zstd_stream.hpp"
#include "kernels/zstd/zstd_tables.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

constexpr u32 kWeightStates = 1u << kZstdMaxWeightBits;
// A table's description, and 255 weights of at most kZstdMaxWeightBits bits.
constexpr u32 kTreeBytes = 256;

class LiteralsSection {
 public:
  explicit LiteralsSection(TransformItem& item)
      : item_(item),
        k_(item.k),
        shared_(code_length_workspace<kZstdMaxCodeBits>(k_)),
        weights_(k_.shared<u8, kSymbols, 16>("weights").data()),
        weight_symbols_(k_.shared<u8, kWeightStates, 16>("weight_symbols").data()),
        weight_table_{shared_.leaf_parents, k_.shared<u16, kWeightStates, 16>("weight_states").data()},
        description_(k_.shared<u8, kTreeBytes, 16>("description").data()),
        weight_count_(k_, 0),
        coded_weight_bytes_(k_, 0) {}

  template <class Fail>
  void write(const Fail& fail_if) {
    const WarpU32 size = item_.src_size;
    count_bytes(k_, item_.src, size, shared_.counts);
    LaneVar largest(k_, 0);
    for_lane_symbols(k_, [&](auto, const LaneU32& s) { largest = max(*largest, shared_.counts.at(s).load()); });
    const WarpBool is_run = (size != 0) & (reduce_max(*largest) == size);
    const WarpU32 plain_header_bytes = select(size < 32, 1, choice(size < 4096, 2, 3));
    item_.size_bytes = plain_header_bytes + select(is_run, 1, size);
    WarpVar is_coded(k_, 0);
    k_.if_((size > 1) & !is_run, [&] {
      make_codes();
      describe_weights();
      is_coded = zext<u32>((*coded_weight_bytes_ != 0) | (*weight_count_ <= kZstdMaxDirectWeights));
    });
    k_.if_(*is_coded != 0, [&] { code(is_coded); });
    fail_if(*item_.size_bytes > item_.capacity, StreamStatus::output_overrun);
    k_.if_(*is_coded == 0, [&] { write_plain(is_run, plain_header_bytes); });
  }

 private:
  WarpU32 choice(const WarpBool& condition, u32 a, u32 b) { return select(condition, k_.constant(a), b); }

  // Sets the codes, with their lengths from bit 16 on, in place of the counts, and the weights.
  void make_codes() {
    LaneSymbols lengths(k_);
    CodeLengths<kZstdMaxCodeBits>(k_, shared_).make(lengths);
    const WarpU32 longest = reduce_max(lengths.largest());
    LaneVar last(k_, 0);
    for_lane_symbols(k_, [&](auto j, const LaneU32& s) {
      weights_.at(s).store(trunc<u8>(select(*lengths[j] == 0, 0, longest + 1 - *lengths[j])));
      last = select(*lengths[j] == 0, *last, s);
    });
    weight_count_ = reduce_max(*last);
    WarpVar next(k_, 0);
    k_.range(k_.constant<u32>(0), u32{kZstdMaxCodeBits}, 1, [&](const auto& i) {
      const WarpU32 length = kZstdMaxCodeBits - i;
      LaneVar own(k_, 0);
      unrolled<kLaneSymbols>([&](auto j) { own += zext<u32>(*lengths[j] == length); });
      LaneVar code(k_, *next + exclusive_sum(*own));
      for_lane_symbols(k_, [&](auto j, const LaneU32& s) {
        k_.if_(*lengths[j] == length, [&] {
          shared_.counts.at(s).store(*code | length << 16);
          code += 1;
        });
      });
      next = (*next + reduce_add(*own)) >> 1;
    });
    k_.sync_warp();
  }

  // Codes the weights by FSE in `description_`, unless they are fewer than two or all equal.
  void describe_weights() {
    const SymbolWords& counts = shared_.leaves;
    const WarpU32 count = *weight_count_;
    for_lane_symbols(k_, [&](auto, const LaneU32& s) { counts.at(s).store(k_.constant<u32>(0)); });
    k_.sync_warp();
    for_each_lane(k_, count, [&](const LaneU32& i) {
      atomic_add(counts.at(zext<u32>(weights_.at(i).load())), k_.constant<u32>(1), Order::relaxed, Scope::cta);
    });
    k_.sync_warp();
    const WarpU32 distinct = popc(ballot(counts.at(k_.lane()).load() != 0));
    coded_weight_bytes_ = 0;
    k_.if_(distinct >= 2, [&] {
      const WarpU32 table_bits = zstd_table_bits(k_, count, distinct, kZstdMaxWeightBits);
      const WarpU32 state_count = shift_left(1, table_bits);
      LaneSymbols frequencies(k_);
      normalise_frequencies(k_, counts, count, table_bits, frequencies);
      spread(k_, frequencies, state_count, weight_symbols_, weight_table_.words);
      for_each_place(
          k_, state_count, weight_symbols_, counts, [&](const LaneU32& place, const LaneU32& s, const LaneU32& i) {
            weight_table_.next.at((weight_table_.words.at(s).load() >> 16) + i).store(trunc<u16>(state_count + place));
          });
      LaneVar bytes(k_, 0);
      k_.once_per_warp([&] {
        ZstdSerialBits bits(k_, description_);
        zstd_describe(k_, weight_table_.words, table_bits, bits);
        code_weights(count, table_bits, state_count, bits);
        bytes = bits.size_bytes();
      });
      k_.sync_warp();
      coded_weight_bytes_ = broadcast(*bytes);
    });
  }

  // Two interleaved streams, in one lane: even weights have one state, odd ones the other.
  void code_weights(const LaneU32& count, const LaneU32& table_bits, const LaneU32& state_count, ZstdSerialBits& bits) {
    LaneVar own(k_, 0), other(k_, 0), i(k_, count);  // the state of weight i - 1, and that of the one before
    k_.thread_loop([&](auto& weights) {
      weights.break_if(*i == 0);
      i -= 1;
      const LaneU32 weight = zext<u32>(weights_.at(*i).load());
      const LaneU32 state = own;
      own = *other;
      k_.if_(*i + 2 >= count, [&] {
          other = zext<u32>(weight_table_.next.at(weight_table_.words.at(weight).load() >> 16).load());
        }).else_([&] {
        other = weight_table_.code(state, weight,
                                   [&](const LaneU32& field, const LaneU32& width) { bits.append(field, width); });
      });
    });
    // `other` is the state of weight 0, `own` that of weight 1.
    bits.append(*own - state_count, table_bits);
    bits.append(*other - state_count, table_bits);
    bits.append(k_.constant<u32>(1), k_.constant<u32>(1));
    bits.pad();
  }

  // Writes the section with codes if it has room, or clears `is_coded` if that is not smaller than `item_.size_bytes`.
  void code(WarpVar& is_coded) {
    const WarpU32 size = item_.src_size;
    const WarpBool is_single = size < kZstdSingleStreamBytes;
    const WarpU32 direct_bytes = (*weight_count_ + 1) / 2;
    const WarpBool is_direct = (*weight_count_ <= kZstdMaxDirectWeights) &
                               ((*coded_weight_bytes_ == 0) | (direct_bytes <= *coded_weight_bytes_));
    const WarpU32 weight_bytes = select(is_direct, direct_bytes, *coded_weight_bytes_);

    // The lanes' parts of the streams.
    const WarpU32 group = choice(is_single, 32, 8), group_bits = choice(is_single, 5, 3);
    const WarpU32 part = select(is_single, size, (size + 3) / 4);
    const WarpU32 piece = align_down<4>(((part + group - 1) >> group_bits) + 3);
    const LaneU32 stream = k_.lane() >> group_bits, in_stream = k_.lane() & (group - 1);
    const LaneU32 stream_begin = min(stream * part, size), stream_end = min(stream_begin + part, size);
    const LaneU32 begin = min(stream_begin + in_stream * piece, stream_end), end = min(begin + piece, stream_end);

    LaneVar bits(k_, 0);
    for_literals_backwards(begin, end, [&](const LaneU32& code) { bits += code >> 16; });
    ZstdLaneStream lanes(k_, item_.dst, *bits, group);
    const LaneU32 own_bytes = select(lanes.is_first(), lanes.size_bytes(), 0);
    const WarpU32 header_bytes = select(is_single, 3, choice(size < 1u << 14, 4, 5));
    const WarpU32 jumps_at = header_bytes + 1 + weight_bytes;
    const WarpU32 streams_at = jumps_at + choice(is_single, 0, 2 * (kZstdStreams - 1));
    const WarpU32 section_bytes = streams_at + reduce_add(own_bytes);
    is_coded = zext<u32>(section_bytes < *item_.size_bytes);
    item_.size_bytes = min(section_bytes, *item_.size_bytes);
    k_.if_((*is_coded != 0) & (section_bytes <= item_.capacity), [&] {
      mark_warp(k_, Mark::emit, section_bytes);
      const WarpU32 format = select(is_single, 0, choice(size < 1u << 14, 2, 3));
      const WarpU32 width = select(is_single, 10, choice(size < 1u << 14, 14, 18));
      const auto header = zext<u64>(static_cast<u32>(ZstdLiteralsType::compressed) | format << 2 | size << 4) |
                          zext<u64>(section_bytes - header_bytes) << zext<u64>(width + 4);
      k_.if_(k_.lane() < header_bytes,
             [&] { item_.dst.at(k_.lane()).store(trunc<u8>(header >> zext<u64>(k_.lane() * 8))); });
      const auto weights_to = item_.dst.at(header_bytes + 1);
      k_.once_per_warp([&] {
        item_.dst.at(header_bytes).store(trunc<u8>(select(is_direct, *weight_count_ + 127, *coded_weight_bytes_)));
      });
      k_.if_(is_direct, [&] {
          for_each_lane(k_, direct_bytes, [&](const LaneU32& i) {
            const LaneU32 first = i * 2, second = first + 1;
            const LaneU32 low = zext<u32>(weights_.at(second).load());
            weights_to.at(i).store(
                trunc<u8>(zext<u32>(weights_.at(first).load()) << 4 | select(second < *weight_count_, low, 0)));
          });
        }).else_([&] {
        for_each_lane(k_, *coded_weight_bytes_,
                      [&](const LaneU32& i) { weights_to.at(i).store(description_.at(i).load()); });
      });
      const LaneU32 stream_at = streams_at + shuffle(exclusive_sum(own_bytes), k_.lane() & ~(group - 1));
      k_.if_(lanes.is_first() & (stream < choice(is_single, 0, kZstdStreams - 1)),
             [&] { store_u16(item_.dst.at(jumps_at + stream * 2), own_bytes); });
      lanes.begin(stream_at);
      for_literals_backwards(begin, end, [&](const LaneU32& code) { lanes.append(code & 0xFFFF, code >> 16); });
      lanes.end();
    });
  }

  // Calls body with the entry of each literal from `begin` to `end`, the last one first.
  template <class Body>
  void for_literals_backwards(const LaneU32& begin, const LaneU32& end, const Body& body) {
    LaneVar at(k_, end);
    k_.thread_loop([&](auto& bytes) {
      bytes.break_if((*at - begin) % 4 == 0);
      at -= 1;
      body(shared_.counts.at(zext<u32>(item_.src.at(*at).load())).load());
    });
    k_.thread_loop([&](auto& words) {
      words.break_if(*at == begin);
      at -= 4;
      const LaneU32 word = item_.src.at(*at).load_unaligned_u32();
      unrolled<4>([&](auto i) { body(shared_.counts.at(word >> 8 * (3 - i) & 0xFF).load()); });
    });
  }

  // A run, or the literals as they are.
  void write_plain(const WarpBool& is_run, const WarpU32& header_bytes) {
    const WarpU32 size = item_.src_size;
    const WarpU32 type =
        choice(is_run, static_cast<u32>(ZstdLiteralsType::rle), static_cast<u32>(ZstdLiteralsType::raw));
    const WarpU32 header =
        type | select(header_bytes == 1, size << 3, size << 4 | choice(header_bytes == 2, 1 << 2, 3 << 2));
    k_.if_(k_.lane() < header_bytes, [&] { item_.dst.at(k_.lane()).store(trunc<u8>(header >> k_.lane() * 8)); });
    for_each_lane(k_, select(is_run, 1, size),
                  [&](const LaneU32& i) { item_.dst.at(header_bytes + i).store(item_.src.at(i).load()); });
  }

  TransformItem& item_;
  Kernel& k_;
  CodeLengthWorkspace shared_;
  SharedBytes weights_, weight_symbols_;
  FseEncoderTable weight_table_;
  SharedBytes description_;
  WarpVar weight_count_;        // without the last symbol that occurs
  WarpVar coded_weight_bytes_;  // 0: they cannot be coded
};

}  // namespace

KernelDefinition zstd_literals() {
  return define_transform<>(
      kZstdLiterals,
      {.registers = 80,
       .shared_bytes = kCodeLengthWorkspaceBytes<kZstdMaxCodeBits> + kSymbols + kWeightStates * 3 + kTreeBytes},
      N, "one warp a section", [](TransformItem& item, const auto& fail_if) {
        fail_if(item.src_size > kZstdMaxLiterals, StreamStatus::item_too_large);
        LiteralsSection(item).write(fail_if);
      });
}

}  // namespace ptxkit::kernels
