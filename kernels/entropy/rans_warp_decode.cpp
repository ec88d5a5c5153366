// Decoding of rANS, format `warp`: a row of 32 symbols in each step. Each lane advances its state. Lanes that need a
// word find it by a ballot and the number of lower lanes that need one too. The warps of a CTA share the table and take
// chunks in turn. Words come from a ring in shared memory, since a row that loads them from device memory would wait
// longer than it computes.
#include <array>
#include <tuple>
#include <type_traits>

#include "kernels/abi.hpp"
#include "kernels/entropy/frequencies.hpp"
#include "kernels/entropy/rans_format.hpp"
#include "kernels/kernels.hpp"
#include "kernels/transform.hpp"
#include "kernels/transform_abi.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

constexpr u32 kSlots = 1u << kMaxWarpScaleBits;
constexpr u32 kStatesBytes = 4 * kRansWarpLanes;
constexpr u32 kWarps = kRansDecodeWarps;
constexpr u32 kTurnRows = 4;  // rows of an iteration, which checks only once whether words and symbols are left
constexpr u32 kTurnSymbols = kTurnRows * kWarpLanes;
constexpr u32 kPartWords = kTurnSymbols;  // words that are loaded into the ring at once; no iteration takes more
constexpr u32 kRingParts = 4;
constexpr u32 kRingWords = kRingParts * kPartWords;  // for each warp

class Decoder {
 public:
  Decoder(TransformItem& item, const Ptr<shared, u32, 16>& slots, const Ptr<shared, u16, 16>& rings,
          const Ptr<shared, u32, 16>& failures)
      : item_(item),
        k_(item.k),
        slots_(slots),
        ring_(rings.at(times<kRingWords>(item.k.warp()))),
        failures_(failures),
        scale_bits_(item.k, 0),
        chunk_bits_(item.k, 0),
        counts_at_(item.k, 0),
        chunk_count_(item.k, 0) {}

  // Reads the stream's header in every warp. Then each warp fills its part of the slots.
  template <class Fail>
  void open(const Fail& fail_if) {
    fail_if(is_too_large(item_), StreamStatus::item_too_large);
    fail_if(item_.src_size < kRansWarpHeaderBytes, StreamStatus::input_overrun);
    const WarpU32 raw_bytes = load_u32(item_.src);
    scale_bits_ = zext<u32>(item_.src.at<4>().load());
    chunk_bits_ = zext<u32>(item_.src.at<5>().load());
    fail_if((*scale_bits_ - kMinScaleBits > kMaxWarpScaleBits - kMinScaleBits) |
                (*chunk_bits_ - kMinChunkBits > kMaxChunkBits - kMinChunkBits),
            StreamStatus::bad_table);
    fail_if(raw_bytes > item_.capacity, StreamStatus::output_overrun);
    fail_if((raw_bytes == 0) & (item_.src_size != kRansWarpHeaderBytes), StreamStatus::corrupt);
    item_.size_bytes = raw_bytes;
    fail_if(raw_bytes == 0, StreamStatus::ok);  // an empty stream

    LaneSymbols frequencies(k_);
    const WarpU32 table_bytes =
        read_table(k_, item_.src.at<kRansWarpHeaderBytes>(), item_.src_size - kRansWarpHeaderBytes,
                   k_.constant<u32>(1) << *scale_bits_, frequencies, fail_if);
    counts_at_ = table_bytes + kRansWarpHeaderBytes;
    const WarpU32 chunk_count = (raw_bytes + chunk_bytes() - 1) >> *chunk_bits_;
    fail_if((item_.src_size - *counts_at_) / 4 < chunk_count, StreamStatus::input_overrun);
    check_structure(chunk_count, fail_if);
    chunk_count_ = chunk_count;
    fill_slots(frequencies);
  }

  // Decodes the chunks of this warp. To be called after a barrier.
  void decode() {
    WarpVar at(k_, *counts_at_ + *chunk_count_ * 4), bad(k_, 0);
    k_.range(k_.constant<u32>(0), *chunk_count_, kWarpLanes, [&](const WarpU32& first) {
      const Chunks chunks = chunks_from(first, *chunk_count_, *at);
      k_.range(k_.warp(), min(*chunk_count_ - first, kWarpLanes), kWarps, [&](const WarpU32& i) {
        const WarpU32 begin = (first + i) << *chunk_bits_, chunk_at = shuffle(chunks.at, i);
        mark_warp(k_, Mark::parse, chunk_at);
        const WarpU32 length = min(*item_.size_bytes - begin, chunk_bytes());
        bad |= zext<u32>(!decode_chunk(chunk_at, shuffle(chunks.words, i), begin, length));
      });
      at = chunks.end;
    });
    k_.once_per_warp([&] { failures_.at(k_.warp()).store(*bad); });
  }

  // Combines the warps' results. To be called after another barrier.
  void close() {
    const WarpBool failed = any(failures_.at(k_.lane() % kWarps).load() != 0);
    k_.if_((!item_.has_failed()) & failed,
           [&] { item_.status = k_.constant(static_cast<u32>(StreamStatus::corrupt)); });
  }

 private:
  // Up to 32 chunks, one in each lane: their positions and numbers of words. Lanes after the last chunk have none.
  struct Chunks {
    LaneU32 words, at, bytes;
    WarpU32 end;
  };

  WarpU32 chunk_bytes() const { return k_.constant<u32>(1) << *chunk_bits_; }

  Chunks chunks_from(const WarpU32& first, const WarpU32& chunk_count, const WarpU32& at) {
    const LaneBool there = first + k_.lane() < chunk_count;
    const LaneU32 words = load_u32(item_.src.at(*counts_at_ + select(there, first + k_.lane(), 0) * 4));
    // Values above what a chunk can have are reduced to one that is refused, so that they do not wrap the sums.
    const LaneU32 bytes = select(there, min(words, chunk_bytes() + 1) * 2 + kStatesBytes, 0);
    return {select(there, words, 0), at + exclusive_sum(bytes), bytes, at + reduce_add(bytes)};
  }

  // Checks that every chunk is inside the stream and that nothing follows the last one.
  template <class Fail>
  void check_structure(const WarpU32& chunk_count, const Fail& fail_if) {
    WarpVar at(k_, *counts_at_ + chunk_count * 4);
    k_.range(k_.constant<u32>(0), chunk_count, kWarpLanes, [&](const WarpU32& first, auto& groups) {
      const FailIf fail_group_if{item_, groups};
      const Chunks chunks = chunks_from(first, chunk_count, *at);
      const WarpU32 long_ones = ballot(chunks.words > chunk_bytes());
      const WarpU32 cut_ones = ballot((chunks.bytes != 0) & (chunks.at + chunks.bytes > item_.src_size));
      const WarpU32 first_bad = (long_ones | cut_ones) & (0 - (long_ones | cut_ones));
      fail_group_if((long_ones & first_bad) != 0, StreamStatus::bad_lanes);
      fail_group_if(first_bad != 0, StreamStatus::input_overrun);
      at = chunks.end;
    });
    fail_if.if_failed();
    fail_if(*at != item_.src_size, StreamStatus::corrupt);
  }

  // Fills the slots. A slot has its symbol in bits 0 to 7, the symbol's frequency minus one in bits 8 to 19, and its
  // index among the symbol's slots from bit 20 on.
  void fill_slots(LaneSymbols& frequencies) {
    LaneVar start(k_, exclusive_sum(frequencies.sum()));
    for_lane_symbols(k_, [&](auto j, const LaneU32& s) {
      k_.if_(k_.warp() == j % kWarps, [&] {
        // All lanes together fill the slots of one lane's symbol after the other: no lane waits for a long run.
        k_.range(k_.constant<u32>(0), u32{kWarpLanes}, 1, [&](const auto& lane) {
          const WarpU32 symbol = shuffle(s, lane), frequency = shuffle(*frequencies[j], lane),
                        first = shuffle(*start, lane);
          for_each_lane(k_, frequency,
                        [&](const LaneU32& i) { slots_.at(first + i).store(symbol | (frequency - 1) << 8 | i << 20); });
        });
      });
      start += *frequencies[j];
    });
  }

  // The next state, given the slot of the present one, before it takes a word.
  LaneU32 next_state(const LaneU32& state, const LaneU32& slot) const {
    return ((slot >> 8 & 0xFFF) + 1) * (state >> *scale_bits_) + (slot >> 20);
  }

  WarpBool decode_chunk(const WarpU32& at, const WarpU32& word_count, const WarpU32& begin, const WarpU32& length) {
    const auto states = item_.src.at(at);
    const auto words = item_.src.at(at + kStatesBytes);
    LaneVar state(k_, load_u32(states.at(k_.lane() * 4)));
    WarpVar next(k_, 0), row(k_, 0), bad(k_, ballot(*state < kRansLow));
    const WarpU32 slot_mask = (k_.constant<u32>(1) << *scale_bits_) - 1;
    // The ring holds the words from an address that is a multiple of 8. It is not used for a stream at an odd address.
    const auto excess = trunc<u32>(words.address()) & 7;
    const auto source = item_.src.at(at + kStatesBytes - excess);
    const WarpU32 skipped = excess / 2;
    const WarpU32 parts_there =
        select(excess % 2 == 0, (item_.src_size - (at + kStatesBytes - excess)) / (2 * kPartWords), 0);
    WarpVar parts(k_, 0);
    std::array<LaneVar, 2> asked{LaneVar(k_, 0), LaneVar(k_, 0)};
    // Loads four words for each lane. They are kept later, so that no instruction waits for them.
    const auto ask = [&](const WarpBool& asks) {
      k_.if_(asks, [&] {
        const auto loaded = source.assume_aligned<8>("the address less its excess")
                                .template as<u32>()
                                .at(times<2>(*parts * kWarpLanes + k_.lane()))
                                .template load_vector<2>();
        for (u32 i = 0; i < 2; ++i) asked[i] = loaded[i];
      });
    };
    const auto keep = [&](const WarpBool& asks) {
      k_.if_(asks, [&] {
        ring_.at(times<4>(*parts % kRingParts * kWarpLanes + k_.lane()))
            .template as<u32>()
            .store_vector(std::array<LaneU32, 2>{*asked[0], *asked[1]});
        parts += 1;
        k_.sync_warp();
      });
    };
    k_.sync_warp();  // the previous chunk's words have been read
    unrolled<kRingParts - 1>([&](auto) {
      const WarpBool asks = *parts < parts_there;
      ask(asks);
      keep(asks);
    });
    // Iterations of whole rows, as long as each lane could take a word in each of them.
    k_.warp_loop([&](auto& turns) {
      turns.break_if((*row + kTurnSymbols > length) | (*next + kTurnSymbols > word_count) |
                     (skipped + *next + kPartWords > *parts * kPartWords));
      const auto to = item_.dst.at(begin + *row + k_.lane());
      const WarpBool asks = (*parts < parts_there) & ((*parts + 1) * kPartWords <= skipped + *next + kRingWords);
      ask(asks);
      unrolled<kTurnRows>([&](auto i) {
        const LaneU32 slot = slots_.at(*state & slot_mask).load();
        to.at(std::integral_constant<u32, i * kWarpLanes>{}).store(trunc<u8>(slot));
        const LaneU32 turned = next_state(*state, slot);
        const LaneBool needs = turned < kRansLow;
        const WarpU32 needing = ballot(needs);
        const LaneU32 place = skipped + *next + popc(needing & k_.lanes_below());
        state = select(needs, turned << 16 | zext<u32>(ring_.at(place % kRingWords).load()), turned);
        next += popc(needing);
      });
      k_.sync_warp();  // every lane has read the words that are now overwritten
      keep(asks);
      row += kTurnSymbols;
    });
    k_.range(*row, length, kWarpLanes, [&](const WarpU32& first, auto& rows) {
      const LaneBool active = first + k_.lane() < length;
      const LaneU32 slot = slots_.at(*state & slot_mask).load();
      const LaneU32 turned = next_state(*state, slot);
      const LaneBool needs = active & (turned < kRansLow);
      const WarpU32 needing = ballot(needs);
      const LaneU32 place = *next + popc(needing & k_.lanes_below());
      next += popc(needing);
      bad |= zext<u32>(*next > word_count);
      rows.break_if(*bad != 0);
      k_.if_(active, [&] {
        item_.dst.at(begin + first + k_.lane()).store(trunc<u8>(slot));
        state = turned;
      });
      k_.if_(needs, [&] { state = turned << 16 | load_u16(words.at(place * 2)); });
    });
    return (*bad == 0) & (*next == word_count) & all(*state == kRansLow);
  }

  TransformItem& item_;
  Kernel& k_;
  Ptr<shared, u32, 16> slots_;
  Ptr<shared, u16, 16, Rate::warp> ring_;
  Ptr<shared, u32, 16> failures_;
  WarpVar scale_bits_, chunk_bits_, counts_at_, chunk_count_;
};

}  // namespace

KernelDefinition rans_warp_decode() {
  return define_cta_transform<kWarps>(
      kRansWarpDecode,
      {.registers = 72, .shared_bytes = (kSlots + kWarps) * sizeof(u32) + kWarps * kRingWords * sizeof(u16)}, M,
      "four warps a stream, each every fourth chunk", [](TransformItem& item) {
        Kernel& k = item.k;
        const auto slots = k.shared<u32, kSlots, 16>("slots");
        const auto failures = k.shared<u32, kWarps, 16>("failures");
        const auto rings = k.shared<u16, kWarps * kRingWords, 16>("rings");
        Decoder decoder(item, slots.data(), rings.data(), failures.data());
        decode_stream(item, decoder);
      });
}

}  // namespace ptxkit::kernels
