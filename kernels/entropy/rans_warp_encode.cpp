// rANS, `warp`: a row of 32 symbols a turn, from the last row to the first. A chunk is coded twice: once to count its
// words, once to write them from the last to the first, each row's words in order of the lanes.
#include "kernels/entropy/frequencies.hpp"
#include "kernels/entropy/rans_format.hpp"
#include "kernels/kernels.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;
using Option = Expr<u32, Rate::Block>;

constexpr u32 kStatesBytes = 4 * kRansWarpLanes;

class Encoder {
 public:
  Encoder(TransformItem& item, const SymbolWords& table, const Option& scale_bits, const Option& chunk_bits)
      : item_(item), k_(item.k), table_(table), scale_bits_(scale_bits), chunk_bits_(chunk_bits) {}

  // The item is not empty.
  template <class Fail>
  void encode(const Fail& fail_if) {
    LaneSymbols frequencies(k_);
    count_bytes(k_, item_.src, item_.src_size, table_);
    normalise_frequencies(k_, table_, item_.src_size, scale_bits_, frequencies);
    const Option chunk_bytes = k_.constant<u32>(1) << chunk_bits_;
    const WarpU32 chunk_count = (item_.src_size + chunk_bytes - 1) >> chunk_bits_;
    const WarpU32 counts_at = table_bytes(k_, frequencies) + kRansWarpHeaderBytes;
    WarpVar at(k_, counts_at + chunk_count * 4);
    fail_if(*at > item_.capacity, StreamStatus::output_overrun);
    write_table(k_, frequencies, item_.dst.at<kRansWarpHeaderBytes>());
    keep(frequencies);

    k_.range(k_.constant<u32>(0), chunk_count, 1, [&](const WarpU32& c, auto& chunks) {
      mark_warp(k_, Mark::emit, *at);
      const WarpU32 begin = c << chunk_bits_;
      const WarpU32 length = min(item_.src_size - begin, chunk_bytes);
      WarpVar words(k_, 0);
      (void)run(begin, length,
                [&](const LaneU32&, const LaneBool&, const WarpU32& leaving) { words += popc(leaving); });
      const WarpU32 end = *at + kStatesBytes + *words * 2;
      FailIf{item_, chunks}(end > item_.capacity, StreamStatus::output_overrun);

      WarpVar to(k_, end);
      const LaneU32 state =
          run(begin, length, [&](const LaneU32& word, const LaneBool& leaves, const WarpU32& leaving) {
            to -= popc(leaving) * 2;
            const LaneU32 place = *to + popc(leaving & k_.lanes_below()) * 2;
            k_.if_(leaves, [&] { store_u16(item_.dst.at(place), word); });
          });
      store_u32(item_.dst.at(*at + k_.lane() * 4), state);
      k_.once_per_warp([&] { store_u32(item_.dst.at(counts_at + c * 4), *words); });
      at = end;
    });
    item_.size_bytes = *at;
  }

 private:
  // The table's word of a symbol: its frequency, and above that where its slots start.
  void keep(LaneSymbols& frequencies) {
    k_.sync_warp();
    LaneVar start(k_, exclusive_sum(frequencies.sum()));
    for_lane_symbols(k_, [&](auto j, const LaneU32& s) {
      table_.at(s).store(*frequencies[j] | *start << 16);
      start += *frequencies[j];
    });
    k_.sync_warp();
  }

  // Codes a chunk; the lanes' states after that. on_words(state, leaves, leaving) in every row: the low half of the
  // state is a word of the stream in lanes where `leaves`, which `leaving` is the mask of.
  template <class OnWords>
  LaneU32 run(const WarpU32& begin, const WarpU32& length, const OnWords& on_words) {
    LaneVar state(k_, kRansLow);
    WarpVar row(k_, align_down<kWarpLanes>(length + (kWarpLanes - 1)));
    k_.warp_loop([&](auto& rows) {
      rows.break_if(*row == 0);
      row -= kWarpLanes;
      const LaneU32 place = *row + k_.lane();
      const LaneBool active = place < length;
      const LaneU32 entry = table_.at(zext<u32>(item_.src.at(begin + select(active, place, 0)).load())).load();
      const LaneU32 frequency = entry & 0xFFFF;
      const LaneBool leaves = active & (*state >> (32 - scale_bits_) >= frequency);
      on_words(*state, leaves, ballot(leaves));
      const LaneU32 rest = select(leaves, *state >> 16, *state);
      const LaneU32 quotient = rest / frequency;
      const LaneU32 next = (quotient << scale_bits_) + (rest - quotient * frequency) + (entry >> 16);
      state = select(active, next, *state);
    });
    return *state;
  }

  TransformItem& item_;
  Kernel& k_;
  SymbolWords table_;
  Option scale_bits_, chunk_bits_;
};

}  // namespace

KernelDefinition rans_warp_encode() {
  return define_transform<Arg<"scale_bits", u32>, Arg<"chunk_bits", u32>>(
      kRansWarpEncode, {.registers = 72, .shared_bytes = kSymbols * sizeof(u32)}, "one warp a stream",
      [](TransformItem& item, const auto& fail_if, const Option& scale_bits, const Option& chunk_bits) {
        const auto table = item.k.shared<u32, kSymbols, 16>("table");
        fail_if((scale_bits - kMinScaleBits > kMaxWarpScaleBits - kMinScaleBits) |
                    (chunk_bits - kMinChunkBits > kMaxChunkBits - kMinChunkBits),
                StreamStatus::bad_option);
        fail_if(item.capacity < kRansWarpHeaderBytes, StreamStatus::output_overrun);
        item.k.once_per_warp([&] {
          store_u32(item.dst, item.src_size);
          item.dst.at<4>().store(trunc<u8>(scale_bits));
          item.dst.at<5>().store(trunc<u8>(chunk_bits));
        });
        item.size_bytes = item.k.constant(u32{kRansWarpHeaderBytes});
        fail_if(item.src_size == 0, StreamStatus::ok);  // that is all
        Encoder(item, table.data(), scale_bits, chunk_bits).encode(fail_if);
      });
}

}  // namespace ptxkit::kernels
