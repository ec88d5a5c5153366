// rANS, `chunked`: a thread for each lane of a stream. As many chunks as have lanes for it are decoded at once, so that
// four lanes a chunk still fill the warp with eight chunks.
#include "kernels/entropy/frequencies.hpp"
#include "kernels/entropy/rans_format.hpp"
#include "kernels/kernels.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

constexpr u32 kSlots = 1u << kMaxScaleBits;

class Decoder {
 public:
  Decoder(TransformItem& item, const SymbolWords& table, const Ptr<Shared, u8, 16, Rate::Warp>& slots,
          const WarpU32& scale_bits)
      : item_(item),
        k_(item.k),
        table_(table),
        slots_(slots),
        scale_bits_(scale_bits),
        chunk_count_(load_u16(item.src.at<kRansChunkCountAt>())),
        first_chunk_at_(chunk_count_ * 2 + kRansLengthsAt) {}

  template <class Fail>
  void decode(const Fail& fail_if) {
    const WarpU32 sum = read_table();
    fail_if(sum != select(chunk_count_ == 0, 0, k_.constant<u32>(1) << scale_bits_), StreamStatus::bad_table);
    fail_if(first_chunk_at_ > item_.src_size, StreamStatus::input_overrun);
    check_structure();
    fail_if.if_failed();
    fill_slots();
    const LaneU32 bad = decode_chunks();
    fail_if(any(bad != 0), StreamStatus::corrupt);
  }

 private:
  // The table's word of a symbol: its frequency, and above that where its slots start. Returns the frequencies' sum.
  WarpU32 read_table() {
    LaneSymbols frequencies(k_);
    for_lane_symbols(k_,
                     [&](auto j, const LaneU32& s) { frequencies[j] = load_u16(item_.src.at(kRansTableAt + s * 2)); });
    LaneVar start(k_, exclusive_sum(frequencies.sum()));
    for_lane_symbols(k_, [&](auto j, const LaneU32& s) {
      table_.at(s).store(*frequencies[j] | *start << 16);
      start += *frequencies[j];
    });
    k_.sync_warp();
    return reduce_add(frequencies.sum());
  }

  WarpU32 length_of(const WarpU32& chunk) { return load_u16(item_.src.at(kRansLengthsAt + chunk * 2)); }

  // Walks over the chunks' headers: everything that decoding relies on.
  void check_structure() {
    WarpVar at(k_, first_chunk_at_), raw_bytes(k_, 0);
    k_.range(k_.constant<u32>(0), chunk_count_, 1, [&](const WarpU32& c, auto& chunks) {
      const FailIf fail_if{item_, chunks};
      const WarpU32 length = length_of(c);
      fail_if(*at >= item_.src_size, StreamStatus::input_overrun);
      const WarpU32 lanes = zext<u32>(item_.src.at(*at).load());
      fail_if(lanes - 1 >= kMaxRansLanes, StreamStatus::bad_lanes);
      const WarpU32 header_bytes = lanes * 8 + 1;
      fail_if(item_.src_size - *at < header_bytes, StreamStatus::input_overrun);
      const LaneU32 lane = k_.lane();
      const LaneBool used = lane < lanes;
      const LaneU32 word_count = select(used, load_u32(item_.src.at(*at + 1 + (lanes + select(used, lane, 0)) * 4)), 0);
      const LaneU32 symbols = select(lane < length, (length - lane - 1) / lanes + 1, 0);
      fail_if(any(word_count > symbols), StreamStatus::bad_lanes);
      const WarpU32 words = reduce_add(word_count);
      at += header_bytes;
      fail_if((item_.src_size - *at) / 2 < words, StreamStatus::input_overrun);
      at += words * 2;
      raw_bytes += length;
      fail_if(*raw_bytes > item_.capacity, StreamStatus::output_overrun);
    });
    k_.if_((!item_.has_failed()) & (*at != item_.src_size),
           [&] { item_.status = k_.constant(static_cast<u32>(StreamStatus::corrupt)); });
    item_.size_bytes = *raw_bytes;
  }

  // The symbol of every slot, by all lanes symbol after symbol: no lane waits for the one with the longest run.
  void fill_slots() {
    k_.range(k_.constant<u32>(0), u32{kSymbols}, 1, [&](const auto& s) {
      const WarpU32 word = broadcast(table_.at(s).load());
      for_each_lane(k_, word & 0xFFFF, [&](const LaneU32& i) { slots_.at((word >> 16) + i).store(trunc<u8>(s)); });
    });
    k_.sync_warp();
  }

  // Not 0 in lanes that met something wrong.
  LaneU32 decode_chunks() {
    WarpVar chunk(k_, 0), at(k_, first_chunk_at_), out(k_, 0);
    LaneVar bad(k_, 0);
    k_.warp_loop([&](auto& batches) {
      batches.break_if(*chunk == chunk_count_);
      mark_warp(k_, Mark::parse, *at);
      Lane lane(k_);
      WarpVar used(k_, 0);
      k_.warp_loop([&](auto& chunks) {
        chunks.break_if(*chunk == chunk_count_);
        const WarpU32 lanes = zext<u32>(item_.src.at(*at).load());
        chunks.break_if(*used + lanes > kWarpLanes);
        const WarpU32 length = length_of(*chunk);
        begin(lane, lanes, length, *used, at, *out);
        used += lanes;
        out += length;
        chunk += 1;
      });
      run(lane, bad);
    });
    return *bad;
  }

  // A lane of a chunk.
  struct Lane {
    explicit Lane(Kernel& k) : state(k, kRansLow), words_at(k, 0), words_left(k, 0), to(k, 0), end(k, 0), step(k, 1) {}
    LaneVar state, words_at, words_left;
    LaneVar to, end, step;  // places in the room
  };

  // Gives the lanes from `used` on to the chunk at `at`, and moves behind it.
  void begin(Lane& lane, const WarpU32& lanes, const WarpU32& length, const WarpU32& used, WarpVar& at,
             const WarpU32& out) {
    const LaneU32 index = k_.lane() - used;  // wraps for lanes that have a chunk already
    const LaneBool mine = index < lanes;
    const LaneU32 own = select(mine, index, 0);
    const LaneU32 word_count = select(mine, load_u32(item_.src.at(*at + 1 + (lanes + own) * 4)), 0);
    const LaneU32 words_before = exclusive_sum(word_count);
    const WarpU32 words_at = *at + 1 + lanes * 8;
    lane.state = select(mine, load_u32(item_.src.at(*at + 1 + own * 4)), *lane.state);
    lane.words_at = select(mine, words_at + words_before * 2, *lane.words_at);
    lane.words_left = select(mine, word_count, *lane.words_left);
    lane.to = select(mine, out + index, *lane.to);
    lane.end = select(mine, out + length, *lane.end);
    lane.step = select(mine, lanes, *lane.step);
    at = words_at + reduce_add(word_count) * 2;
  }

  void run(Lane& lane, LaneVar& bad) {
    bad |= zext<u32>(*lane.state < kRansLow);
    const WarpU32 slot_mask = (k_.constant<u32>(1) << scale_bits_) - 1;
    k_.thread_loop([&](auto& symbols) {
      symbols.break_if(*lane.to >= *lane.end);
      const LaneU32 slot = *lane.state & slot_mask;
      const auto symbol = slots_.at(slot).load();
      const LaneU32 word = table_.at(zext<u32>(symbol)).load();
      item_.dst.at(*lane.to).store(symbol);
      lane.to += *lane.step;
      lane.state = (word & 0xFFFF) * (*lane.state >> scale_bits_) + slot - (word >> 16);
      k_.if_(*lane.state < kRansLow, [&] {
        const LaneBool has_word = *lane.words_left != 0;
        const LaneU32 next = load_u16(item_.src.at(select(has_word, *lane.words_at, 0)));
        lane.state = *lane.state << 16 | next;
        lane.words_at += 2;
        lane.words_left -= zext<u32>(has_word);
        bad |= zext<u32>(!has_word);
      });
    });
    bad |= zext<u32>((*lane.state != kRansLow) | (*lane.words_left != 0));
  }

  TransformItem& item_;
  Kernel& k_;
  SymbolWords table_;
  Ptr<Shared, u8, 16, Rate::Warp> slots_;
  WarpU32 scale_bits_;
  WarpU32 chunk_count_;
  WarpU32 first_chunk_at_;
};

}  // namespace

KernelDefinition rans_chunked_decode() {
  return define_transform<>(kRansChunkedDecode, {.registers = 64, .shared_bytes = kSlots + kSymbols * sizeof(u32)},
                            "one warp a stream", [](TransformItem& item, const auto& fail_if) {
                              const auto table = item.k.shared<u32, kSymbols, 16>("table");
                              const auto slots = item.k.shared<u8, kSlots, 16>("slots");
                              fail_if(item.src_size < kRansLengthsAt, StreamStatus::input_overrun);
                              const WarpU32 scale_bits = zext<u32>(item.src.load());
                              fail_if(scale_bits - kMinScaleBits > kMaxScaleBits - kMinScaleBits,
                                      StreamStatus::bad_table);
                              Decoder(item, table.data(), slots.data(), scale_bits).decode(fail_if);
                            });
}

}  // namespace ptxkit::kernels
