// rANS, `warp`: a row of 32 symbols a turn. Each lane turns its state over; those that need a word find it by a vote
// and the number of lanes below that need one too.
#include "kernels/entropy/frequencies.hpp"
#include "kernels/entropy/rans_format.hpp"
#include "kernels/kernels.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

constexpr u32 kSlots = 1u << kMaxWarpScaleBits;
constexpr u32 kStatesBytes = 4 * kRansWarpLanes;

class Decoder {
 public:
  using Slots = Ptr<Shared, u32, 16, Rate::Warp>;

  Decoder(TransformItem& item, const Slots& slots)
      : item_(item),
        k_(item.k),
        slots_(slots),
        raw_bytes_(load_u32(item.src)),
        scale_bits_(zext<u32>(item.src.at<4>().load())),
        chunk_bits_(zext<u32>(item.src.at<5>().load())) {}

  template <class Fail>
  void decode(const Fail& fail_if) {
    fail_if((scale_bits_ - kMinScaleBits > kMaxWarpScaleBits - kMinScaleBits) |
                (chunk_bits_ - kMinChunkBits > kMaxChunkBits - kMinChunkBits),
            StreamStatus::bad_table);
    fail_if(raw_bytes_ > item_.capacity, StreamStatus::output_overrun);
    fail_if((raw_bytes_ == 0) & (item_.src_size != kRansWarpHeaderBytes), StreamStatus::corrupt);
    item_.size_bytes = raw_bytes_;
    fail_if(raw_bytes_ == 0, StreamStatus::ok);  // nothing to do

    LaneSymbols frequencies(k_);
    const WarpU32 table_bytes =
        read_table(k_, item_.src.at<kRansWarpHeaderBytes>(), item_.src_size - kRansWarpHeaderBytes,
                   k_.constant<u32>(1) << scale_bits_, frequencies, fail_if);
    fill_slots(frequencies);
    const WarpU32 counts_at = table_bytes + kRansWarpHeaderBytes;
    const WarpU32 chunk_bytes = k_.constant<u32>(1) << chunk_bits_;
    const WarpU32 chunk_count = (raw_bytes_ + chunk_bytes - 1) >> chunk_bits_;
    fail_if((item_.src_size - counts_at) / 4 < chunk_count, StreamStatus::input_overrun);
    const auto word_count = [&](const WarpU32& c) { return load_u32(item_.src.at(counts_at + c * 4)); };
    const WarpU32 first_at = counts_at + chunk_count * 4;

    WarpVar at(k_, first_at);
    k_.range(k_.constant<u32>(0), chunk_count, 1, [&](const WarpU32& c, auto& chunks) {
      const FailIf fail_chunk_if{item_, chunks};
      const WarpU32 words = word_count(c);
      fail_chunk_if(words > chunk_bytes, StreamStatus::bad_lanes);
      fail_chunk_if(item_.src_size - *at < words * 2 + kStatesBytes, StreamStatus::input_overrun);
      at += words * 2 + kStatesBytes;
    });
    fail_if.if_failed();
    fail_if(*at != item_.src_size, StreamStatus::corrupt);

    at = first_at;
    k_.range(k_.constant<u32>(0), chunk_count, 1, [&](const WarpU32& c, auto& chunks) {
      mark_warp(k_, Mark::parse, *at);
      const WarpU32 words = word_count(c), begin = c << chunk_bits_;
      const WarpBool good = decode_chunk(*at, words, begin, min(raw_bytes_ - begin, chunk_bytes));
      FailIf{item_, chunks}(!good, StreamStatus::corrupt);
      at += words * 2 + kStatesBytes;
    });
  }

 private:
  // A slot's symbol in bits 0 to 7, its symbol's frequency less one in 8 to 19, its number among the symbol's from 20.
  void fill_slots(LaneSymbols& frequencies) {
    LaneVar start(k_, exclusive_sum(frequencies.sum()));
    for_lane_symbols(k_, [&](auto j, const LaneU32& s) {
      // All lanes fill the slots of one symbol of each lane, one lane after the other: no lane waits for a long run.
      k_.range(k_.constant<u32>(0), u32{kWarpLanes}, 1, [&](const auto& lane) {
        const WarpU32 symbol = shuffle(s, lane), frequency = shuffle(*frequencies[j], lane),
                      first = shuffle(*start, lane);
        for_each_lane(k_, frequency,
                      [&](const LaneU32& i) { slots_.at(first + i).store(symbol | (frequency - 1) << 8 | i << 20); });
      });
      start += *frequencies[j];
    });
    k_.sync_warp();
  }

  WarpBool decode_chunk(const WarpU32& at, const WarpU32& word_count, const WarpU32& begin, const WarpU32& length) {
    const auto states = item_.src.at(at);
    const auto words = item_.src.at(at + kStatesBytes);
    LaneVar state(k_, load_u32(states.at(k_.lane() * 4)));
    WarpVar next(k_, 0), bad(k_, ballot(*state < kRansLow));
    const WarpU32 slot_mask = (k_.constant<u32>(1) << scale_bits_) - 1;
    k_.range(k_.constant<u32>(0), length, kWarpLanes, [&](const WarpU32& row, auto& rows) {
      const LaneBool active = row + k_.lane() < length;
      const LaneU32 slot = slots_.at(*state & slot_mask).load();
      const LaneU32 turned = ((slot >> 8 & 0xFFF) + 1) * (*state >> scale_bits_) + (slot >> 20);
      const LaneBool needs = active & (turned < kRansLow);
      const WarpU32 needing = ballot(needs);
      const LaneU32 place = *next + popc(needing & k_.lanes_below());
      next += popc(needing);
      bad |= zext<u32>(*next > word_count);
      rows.break_if(*bad != 0);
      k_.if_(active, [&] {
        item_.dst.at(begin + row + k_.lane()).store(trunc<u8>(slot));
        state = turned;
      });
      k_.if_(needs, [&] { state = turned << 16 | load_u16(words.at(place * 2)); });
    });
    return (*bad == 0) & (*next == word_count) & all(*state == kRansLow);
  }

  TransformItem& item_;
  Kernel& k_;
  Slots slots_;
  WarpU32 raw_bytes_, scale_bits_, chunk_bits_;
};

}  // namespace

KernelDefinition rans_warp_decode() {
  return define_transform<>(kRansWarpDecode, {.registers = 64, .shared_bytes = kSlots * sizeof(u32)},
                            "one warp a stream", [](TransformItem& item, const auto& fail_if) {
                              const auto slots = item.k.shared<u32, kSlots, 16>("slots");
                              fail_if(item.src_size < kRansWarpHeaderBytes, StreamStatus::input_overrun);
                              Decoder(item, slots.data()).decode(fail_if);
                            });
}

}  // namespace ptxkit::kernels
