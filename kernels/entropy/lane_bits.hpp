// Bit streams of 32 lanes, one thread each; lane_bits_reference.hpp is the scalar version.
#pragma once

#include <array>
#include <type_traits>

#include "kernels/abi.hpp"
#include "kernels/entropy/frequencies.hpp"
#include "kernels/entropy/lane_format.hpp"
#include "kernels/transform.hpp"
#include "kernels/transform_abi.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

// Calls the coder for the fields of the lane from the last to the first; see for_fields_backwards in the scalar
// version. Each iteration codes four rows, whose symbols were loaded in the previous one.
template <class Coder, class Emit>
void for_fields_backwards(TransformItem& item, Coder& coder, const Emit& emit) {
  using namespace dsl;
  Kernel& k = item.k;
  constexpr u32 kTurnRows = 4, kTurnBytes = kTurnRows * kBitLanes;
  coder.begin();
  // Single rows from the end, the last of which may be incomplete, until the remaining rows are a multiple of four.
  WarpVar row(k, align_down<kBitLanes>(item.src_size + (kBitLanes - 1)));
  const WarpU32 turns_end = align_down<kTurnBytes>(item.src_size);
  k.warp_loop([&](auto& rows) {
    rows.break_if(*row == turns_end);
    row -= kBitLanes;
    const LaneU32 at = *row + k.lane();
    k.if_(at < item.src_size, [&] { coder.symbol(zext<u32>(item.src.at(at).load()), emit); });
  });
  std::array<LaneVar, kTurnRows> ahead{LaneVar(k, 0), LaneVar(k, 0), LaneVar(k, 0), LaneVar(k, 0)};
  const auto look_ahead = [&](const WarpU32& first) {
    const auto from = item.src.at(first + k.lane());
    unrolled<kTurnRows>(
        [&](auto i) { ahead[i] = zext<u32>(from.at(std::integral_constant<u32, i * kBitLanes>{}).load()); });
  };
  k.if_(*row != 0, [&] { look_ahead(*row - kTurnBytes); });
  k.warp_loop([&](auto& turns) {
    turns.break_if(*row == 0);
    const std::array<LaneU32, kTurnRows> symbols{*ahead[0], *ahead[1], *ahead[2], *ahead[3]};
    row -= kTurnBytes;
    look_ahead(max(*row, kTurnBytes) - kTurnBytes);
    unrolled<kTurnRows>([&](auto i) { coder.symbol(symbols[kTurnRows - 1 - i], emit); });
  });
  coder.end(emit);
}

// Writes the sizes and the bits of all lanes at `at`. A first pass counts the bits, which gives each lane its position.
template <class Coder, class Fail>
void write_lanes(TransformItem& item, const WarpU32& at, Coder& coder, const Fail& fail_if) {
  using namespace dsl;
  Kernel& k = item.k;
  LaneVar bits(k, 0);
  for_fields_backwards(item, coder, [&](const LaneU32&, const LaneU32& count) { bits += count; });
  const LaneU32 bytes = (*bits + 7) / 8;
  const LaneU32 before = exclusive_sum(bytes);
  const WarpU32 end = at + kLaneSizesBytes + reduce_add(bytes);
  fail_if(end > item.capacity, StreamStatus::output_overrun);
  mark_warp(k, Mark::emit, at);
  store_u16(item.dst.at(at + k.lane() * 2), bytes);
  // Two bytes at a time leave the buffer, since a field has at most kMaxFieldBits.
  static_assert(kMaxFieldBits < 16);
  LaneVar to(k, at + kLaneSizesBytes + before + bytes), held(k, bytes * 8 - *bits), buffer(k, 0);
  for_fields_backwards(item, coder, [&](const LaneU32& field, const LaneU32& count) {
    buffer |= field << *held;
    held += count;
    k.if_(*held >= 16, [&] {
      to -= 2;
      const auto place = item.dst.at(*to);
      place.template at<1>().store(trunc<u8>(*buffer));
      place.store(trunc<u8>(*buffer >> 8));
      buffer >>= 16;
      held -= 16;
    });
  });
  k.if_(*held != 0, [&] { item.dst.at(*to - 1).store(trunc<u8>(*buffer)); });  // the first byte of the lane
  item.size_bytes = end;
}

// Reads the bits of the lane as aligned words. The first word may begin before the lane, so the bits after the lane's
// end are those that follow it in the stream, and zeros after the stream's end.
//
// A load on which all 32 lanes wait is the slowest operation here. Words therefore come from a ring in shared memory. A
// lane fills it with four words at a time, which it loaded several symbols earlier.
class LaneReader {
 public:
  static constexpr dsl::u32 kVectorWords = 4;
  static constexpr dsl::u32 kRingVectors = 4;
  static constexpr dsl::u32 kRingWords = kVectorWords * kRingVectors * kBitLanes;
  using Ring = dsl::Ptr<dsl::shared, dsl::u32, 16, dsl::Rate::warp>;  // kRingWords, a column for each lane

  // Reads the lanes' sizes at `at`, which must be at least 4, so that an aligned vector can begin before the first
  // lane.
  template <class Fail>
  LaneReader(TransformItem& item, const Ring& ring, const WarpU32& at, const Fail& fail_if)
      : item_(item),
        k_(item.k),
        ring_(ring),
        bytes_(k_, 0),
        begin_(k_, 0),
        excess_bits_(k_, 0),
        vectors_(k_, 0),
        next_(k_, 0),
        high_(k_, 0),
        low_(k_, 0),
        bit_(k_, 0),
        asked_(k_, 0),
        asked_words_{LaneVar(k_, 0), LaneVar(k_, 0), LaneVar(k_, 0), LaneVar(k_, 0)} {
    using namespace dsl;
    fail_if(item.src_size - at < kLaneSizesBytes, StreamStatus::input_overrun);
    bytes_ = load_u16(item.src.at(at + k_.lane() * 2));
    const WarpU32 first = at + kLaneSizesBytes, total = reduce_add(*bytes_);
    fail_if(item.src_size - first < total, StreamStatus::input_overrun);
    fail_if(item.src_size - first != total, StreamStatus::corrupt);
    const LaneU32 begin = first + exclusive_sum(*bytes_);
    const LaneU32 excess = trunc<u32>(item.src.at(begin).address()) & (kVectorWords * 4 - 1);
    begin_ = begin - excess;
    excess_bits_ = excess * 8;
    bit_ = excess % 4 * 8;
    high_ = word(excess / 4);
    low_ = word(excess / 4 + 1);
    next_ = excess / 4 + 2;
    unrolled<kRingVectors - 1>([&](auto) {
      ask();
      keep();
    });
  }

  // The next 32 bits, the first one in bit 31.
  LaneU32 peek() const { return dsl::funnel_left(*low_, *high_, *bit_); }

  // Skips at most 31 bits.
  void skip(const LaneU32& count) {
    bit_ += count;
    k_.if_(*bit_ >= 32, [&] { turn_to(word(*next_)); });
  }
  // The same with words from the ring.
  void skip_in_ring(const LaneU32& count) {
    bit_ += count;
    k_.if_(*bit_ >= 32,
           [&] { turn_to(ring_.at(*next_ % (kVectorWords * kRingVectors) * kBitLanes + k_.lane()).load()); });
  }

  // The fields of one iteration. They need no more words than ask() loads at its beginning and keep() stores at its
  // end.
  static constexpr dsl::u32 kTurnSymbols = 8;
  static_assert(kTurnSymbols * kMaxFieldBits <= 32 * kVectorWords);
  // Whether the ring has the words of an iteration for every lane.
  WarpBool has_turn() const { return dsl::all(*next_ + kVectorWords <= *vectors_ * kVectorWords); }
  void ask() {
    using namespace dsl;
    const LaneU32 words = *vectors_ * kVectorWords;
    const LaneBool asks =
        (words + kVectorWords <= *next_ + kVectorWords * kRingVectors) & (words + kVectorWords <= whole_words());
    asked_ = zext<u32>(asks);
    k_.if_(asks, [&] {
      const auto loaded = item_.src.at(*begin_)
                              .assume_aligned<kVectorWords * 4>("begin_ is where a vector begins")
                              .as<u32>()
                              .at(times<kVectorWords>(*vectors_))
                              .template load_vector<kVectorWords>();
      for (u32 i = 0; i < kVectorWords; ++i) asked_words_[i] = loaded[i];
    });
  }
  void keep() {
    using namespace dsl;
    k_.if_(*asked_ != 0, [&] {
      const auto to = ring_.at(*vectors_ % kRingVectors * (kVectorWords * kBitLanes) + k_.lane());
      unrolled<kVectorWords>([&](auto i) {
        to.at(std::integral_constant<u32, i * kBitLanes>{}).store(first_byte_on_top(*asked_words_[i]));
      });
      vectors_ += 1;
    });
  }

  // Whether exactly the bytes of the lane have been used.
  LaneBool is_at_end() const { return (*next_ * 32 + *bit_ - (64 + *excess_bits_) + 7) / 8 == *bytes_; }

 private:
  LaneU32 whole_words() const { return (item_.src_size - *begin_) / 4; }

  static LaneU32 first_byte_on_top(const LaneU32& word) { return dsl::prmt(word, 0, 0x0123); }

  // A word of the lane from the stream in device memory.
  LaneU32 word(const LaneU32& i) const {
    using namespace dsl;
    LaneVar value(k_, 0);
    k_.if_(i < whole_words(), [&] {
        const auto words = item_.src.at(*begin_).assume_aligned<4>("begin_ is where a vector begins").as<u32>();
        value = first_byte_on_top(words.at(i).load());
      }).else_([&] {
      const LaneU32 at = min(*begin_ + i * 4, item_.src_size);
      k_.range(k_.constant<u32>(0), item_.src_size - at, 1,
               [&](const LaneU32& j) { value |= zext<u32>(item_.src.at(at + j).load()) << (24 - j * 8); });
    });
    return *value;
  }
  void turn_to(const LaneU32& word) {
    high_ = *low_;
    low_ = word;
    next_ += 1;
    bit_ -= 32;
  }

  TransformItem& item_;
  dsl::Kernel& k_;
  Ring ring_;
  LaneVar bytes_;        // bytes of the lane
  LaneVar begin_;        // offset of its first vector
  LaneVar excess_bits_;  // bits of that vector before the lane
  LaneVar vectors_;      // vectors that have been put into the ring
  LaneVar next_;         // number of the word after `low_`
  LaneVar high_, low_;   // two words; the next bit is in the first
  LaneVar bit_;
  LaneVar asked_;  // whether a vector has been loaded but not kept
  std::array<LaneVar, kVectorWords> asked_words_;
};

// Calls body(to, skip) for every symbol of every lane. It stores the symbol at `to` and skips its bits. Each lane calls
// it as often as it has symbols.
template <class Body>
void for_lane_rows(TransformItem& item, const WarpU32& raw_bytes, LaneReader& reader, const Body& body) {
  using namespace dsl;
  Kernel& k = item.k;
  constexpr u32 kTurn = LaneReader::kTurnSymbols;
  WarpVar row(k, 0);
  k.warp_loop([&](auto& turns) {
    turns.break_if((*row + kTurn * kBitLanes > raw_bytes) | !reader.has_turn());
    const auto to = item.dst.at(*row + k.lane());
    reader.ask();
    unrolled<kTurn>([&](auto i) {
      body(to.at(std::integral_constant<u32, i * kBitLanes>{}),
           [&](const LaneU32& count) { reader.skip_in_ring(count); });
    });
    reader.keep();
    row += kTurn * kBitLanes;
  });
  k.range(*row + k.lane(), raw_bytes, kBitLanes,
          [&](const LaneU32& i) { body(item.dst.at(i), [&](const LaneU32& count) { reader.skip(count); }); });
}

}  // namespace ptxkit::kernels
