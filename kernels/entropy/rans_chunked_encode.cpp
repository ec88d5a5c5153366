// Encoding of rANS, format `chunked`: a thread for each lane of a stream, as many chunks at once as the warp's lanes
// suffice for. The words of a lane are contiguous and are produced last first, so every chunk is coded twice: once to
// count the words, once to write them to their positions. This needs no memory besides the result.
#include "kernels/abi.hpp"
#include "kernels/entropy/frequencies.hpp"
#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/rans_entries.hpp"
#include "kernels/entropy/rans_format.hpp"
#include "kernels/kernels.hpp"
#include "kernels/transform.hpp"
#include "kernels/transform_abi.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;
using Option = Expr<u32, Rate::block>;

class Encoder {
 public:
  Encoder(TransformItem& item, const SymbolWords& counts, const SymbolWords& entries, const Option& scale_bits,
          const Option& lanes, const Option& chunk_bytes, const WarpU32& chunk_count)
      : item_(item),
        k_(item.k),
        counts_(counts),
        entries_(entries),
        scale_bits_(scale_bits),
        lanes_(lanes),
        chunk_bytes_(chunk_bytes),
        chunk_count_(chunk_count) {}

  // The caller has checked that the table and the lengths fit.
  void encode() {
    write_table();
    WarpVar chunk(k_, 0), at(k_, chunk_count_ * 2 + kRansLengthsAt);
    const Option chunks_at_once = kWarpLanes / lanes_;
    k_.warp_loop([&](auto& batches) {
      batches.break_if(*chunk >= chunk_count_);
      mark_warp(k_, Mark::emit, *at);
      const LaneU32 group = k_.lane() / lanes_;
      const Lane lane = lane_of(*chunk + group, k_.lane() - group * lanes_, group < chunks_at_once);

      LaneVar word_count(k_, 0);
      (void)run(lane, [&](const LaneU32&) { word_count += 1; });
      const WarpU32 header_bytes = lanes_ * 8 + 1;
      const LaneBool opens = lane.in_use & (lane.index == 0);
      const LaneU32 bytes = *word_count * 2 + select(opens, header_bytes, 0);
      const LaneU32 before = *at + exclusive_sum(bytes);
      const LaneU32 chunk_at = shuffle(before, select(lane.in_use, group * lanes_, 0));
      const WarpU32 end = *at + reduce_add(bytes);
      FailIf{item_, batches}(end > item_.capacity, StreamStatus::output_overrun);

      LaneVar to(k_, before + bytes);
      const LaneU32 state = run(lane, [&](const LaneU32& word) {
        to -= 2;
        store_u16(item_.dst.at(*to), word);
      });
      k_.if_(lane.in_use, [&] {
        const auto states = item_.dst.at(chunk_at + 1);
        store_u32(states.at(lane.index * 4), state);
        store_u32(states.at((lanes_ + lane.index) * 4), *word_count);
      });
      k_.if_(opens, [&] {
        item_.dst.at(chunk_at).store(trunc<u8>(lanes_));
        store_u16(item_.dst.at(kRansLengthsAt + lane.chunk * 2), lane.length);
      });
      at = end;
      chunk += chunks_at_once;
    });
    item_.size_bytes = *at;
  }

 private:
  // The state of a lane of a chunk. An unused lane has no symbols.
  struct Lane {
    LaneU32 chunk, index;
    LaneBool in_use;
    LaneU32 length;  // symbols of the chunk
    LaneU32 symbols, last_at;
  };

  Lane lane_of(const LaneU32& chunk, const LaneU32& index, const LaneBool& has_group) {
    const LaneBool in_use = has_group & (chunk < chunk_count_);
    const LaneU32 begin = chunk * chunk_bytes_;
    const LaneU32 length = select(in_use, min(item_.src_size - begin, chunk_bytes_), 0);
    const LaneU32 symbols = select(index < length, (length - index - 1) / lanes_ + 1, 0);
    return {chunk, index, in_use, length, symbols, begin + index + (symbols - 1) * lanes_};
  }

  // Codes the lane's symbols from the last to the first and returns the final state. Calls on_word(state) for each word
  // that leaves the state: its low half.
  template <class OnWord>
  LaneU32 run(const Lane& lane, const OnWord& on_word) {
    LaneVar state(k_, kRansLow), at(k_, lane.last_at);
    // A symbol is loaded one iteration ahead. Past the lane's first symbol, that of the item is loaded instead.
    const auto symbol_at = [&](const LaneU32& place) {
      return zext<u32>(item_.src.at(select(place < item_.src_size, place, 0)).load());
    };
    LaneVar ahead(k_, 0);
    k_.if_(lane.symbols != 0, [&] { ahead = symbol_at(*at); });
    k_.range(0, lane.symbols, 1, [&](const auto&) {
      const RansEntry entry(entries_, *ahead);
      at -= lanes_;
      ahead = symbol_at(*at);
      k_.if_(entry.gives_up(*state, scale_bits_), [&] {
        on_word(*state);
        state >>= 16;
      });
      state = entry.next(*state, scale_bits_);
    });
    return *state;
  }

  void write_table() {
    LaneSymbols frequencies(k_);
    k_.if_(item_.src_size != 0, [&] {
      count_bytes(k_, item_.src, item_.src_size, counts_);
      normalise_frequencies(k_, counts_, item_.src_size, scale_bits_, frequencies);
    });
    write_rans_entries(k_, frequencies, entries_);
    for_lane_symbols(k_,
                     [&](auto j, const LaneU32& s) { store_u16(item_.dst.at(kRansTableAt + s * 2), *frequencies[j]); });
    k_.once_per_warp([&] {
      item_.dst.store(trunc<u8>(scale_bits_));
      store_u16(item_.dst.at<kRansChunkCountAt>(), chunk_count_);
    });
    k_.sync_warp();
  }

  TransformItem& item_;
  Kernel& k_;
  SymbolWords counts_, entries_;
  Option scale_bits_, lanes_, chunk_bytes_;
  WarpU32 chunk_count_;
};

}  // namespace

KernelDefinition rans_chunked_encode() {
  return define_transform<Arg<"scale_bits", u32>, Arg<"lanes", u32>, Arg<"chunk_bytes", u32>>(
      kRansChunkedEncode, {.registers = 72, .shared_bytes = 3 * kSymbols * sizeof(u32)}, N, "one warp a stream",
      [](TransformItem& item, const auto& fail_if, const Option& scale_bits, const Option& lanes,
         const Option& chunk_bytes) {
        const auto counts = item.k.shared<u32, kSymbols, 16>("counts");
        const auto entries = item.k.shared<u32, 2 * kSymbols, 16>("entries");
        fail_if((scale_bits - kMinScaleBits > kMaxScaleBits - kMinScaleBits) | (lanes - 1 >= kMaxRansLanes) |
                    (chunk_bytes - 1 >= kMaxRansChunkBytes),
                StreamStatus::bad_option);
        const WarpU32 chunk_count = (item.src_size + chunk_bytes - 1) / chunk_bytes;
        fail_if(chunk_count > kMaxRansChunks, StreamStatus::bad_option);
        fail_if(chunk_count * 2 + kRansLengthsAt > item.capacity, StreamStatus::output_overrun);
        Encoder(item, counts.data(), entries.data(), scale_bits, lanes, chunk_bytes, chunk_count).encode();
      });
}

}  // namespace ptxkit::kernels
