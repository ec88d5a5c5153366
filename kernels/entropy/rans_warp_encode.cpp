// Encoding of rANS, format `warp`: a row of 32 symbols in each step, from the last row of the last chunk to the first
// row of the first chunk. Words are written backwards from the end of the output range, so they need not be counted
// first. Finally all chunks are moved down to the end of the table.
#include <array>
#include <tuple>
#include <type_traits>

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

constexpr u32 kStatesBytes = 4 * kRansWarpLanes;
constexpr u32 kTurnRows = 4;  // rows of an iteration, which checks only once whether there is room
constexpr u32 kTurnSymbols = kTurnRows * kWarpLanes;
constexpr u32 kMoveWords = 4;  // u32 that a lane moves in an iteration

class Encoder {
 public:
  Encoder(TransformItem& item, const SymbolWords& counts, const SymbolWords& entries, const Option& scale_bits,
          const Option& chunk_bits)
      : item_(item),
        k_(item.k),
        counts_(counts),
        entries_(entries),
        scale_bits_(scale_bits),
        chunk_bits_(chunk_bits),
        to_(item.k, item.capacity),
        state_(item.k, 0),
        chunks_at_(item.k, 0) {}

  // Encodes an item that is not empty.
  template <class Fail>
  void encode(const Fail& fail_if) {
    LaneSymbols frequencies(k_);
    count_bytes(k_, item_.src, item_.src_size, counts_);
    normalise_frequencies(k_, counts_, item_.src_size, scale_bits_, frequencies);
    const Option chunk_bytes = k_.constant<u32>(1) << chunk_bits_;
    const WarpU32 chunk_count = (item_.src_size + chunk_bytes - 1) >> chunk_bits_;
    const WarpU32 counts_at = table_bytes(k_, frequencies) + kRansWarpHeaderBytes;
    chunks_at_ = counts_at + chunk_count * 4;
    fail_if(*chunks_at_ > item_.capacity, StreamStatus::output_overrun);
    write_table(k_, frequencies, item_.dst.at<kRansWarpHeaderBytes>());
    write_rans_entries(k_, frequencies, entries_);

    k_.range(k_.constant<u32>(1), chunk_count + 1, 1, [&](const WarpU32& i, auto& chunks) {
      const WarpU32 c = chunk_count - i, begin = c << chunk_bits_;
      mark_warp(k_, Mark::emit, *to_);
      const WarpU32 end = *to_;
      encode_chunk(begin, min(item_.src_size - begin, chunk_bytes));
      FailIf{item_, chunks}(*to_ < *chunks_at_ + kStatesBytes, StreamStatus::output_overrun);
      k_.once_per_warp([&] { store_u32(item_.dst.at(counts_at + c * 4), (end - *to_) / 2); });
      to_ -= kStatesBytes;
      store_u32(item_.dst.at(*to_ + k_.lane() * 4), *state_);
    });
    fail_if.if_failed();
    item_.size_bytes = *chunks_at_ + (item_.capacity - *to_);
    move_down();
  }

 private:
  // Advances the states by a row of symbols. Calls on_words(word, leaves, leaving) for the words that go in front of
  // to_, which the callee has to move. `leaves` is true in lanes with a word; `leaving` is their mask.
  template <class Active, class OnWords>
  void encode_row(const LaneU32& symbol, const Active& active, const OnWords& on_words) {
    const RansEntry entry(entries_, symbol);
    const LaneBool leaves = active(entry.gives_up(*state_, scale_bits_));
    on_words(*state_, leaves, ballot(leaves));
    const LaneU32 next = entry.next(select(leaves, *state_ >> 16, *state_), scale_bits_);
    state_ = select(active(k_.constant(true)), next, *state_);
  }

  // Leaves to_ at the beginning of the chunk's words, or below chunks_at_ if they do not fit.
  void encode_chunk(const WarpU32& begin, const WarpU32& length) {
    state_ = k_.constant<u32>(kRansLow);
    WarpVar row(k_, align_down<kWarpLanes>(length + (kWarpLanes - 1)));
    // Single rows until the remaining rows are whole iterations.
    k_.warp_loop([&](auto& rows) {
      rows.break_if((*row % kTurnSymbols == 0) & (*row <= length));
      encode_careful_row(begin, length, row, rows);
    });
    // Words are stored from an even address on. If the end of the output range is odd, this path is not used.
    const WarpU32 excess = trunc<u32>(item_.dst.address());
    const WarpBool is_even = (excess + item_.capacity) % 2 == 0;
    const auto words = item_.dst.align_down<2>().template as<u16>();
    std::array<LaneVar, kTurnRows> ahead{LaneVar(k_, 0), LaneVar(k_, 0), LaneVar(k_, 0), LaneVar(k_, 0)};
    const auto look_ahead = [&](const WarpU32& first) {
      const auto from = item_.src.at(begin + first + k_.lane());
      unrolled<kTurnRows>(
          [&](auto i) { ahead[i] = zext<u32>(from.at(std::integral_constant<u32, i * kWarpLanes>{}).load()); });
    };
    k_.if_((*row != 0) & (*row <= length), [&] { look_ahead(*row - kTurnSymbols); });
    // Iterations as long as every lane could emit a word in each row.
    k_.warp_loop([&](auto& turns) {
      turns.break_if((*row == 0) | (*row > length) | !is_even | (*to_ < *chunks_at_ + 2 * kTurnSymbols));
      const std::array<LaneU32, kTurnRows> symbols{*ahead[0], *ahead[1], *ahead[2], *ahead[3]};
      row -= kTurnSymbols;
      look_ahead(max(*row, kTurnSymbols) - kTurnSymbols);
      unrolled<kTurnRows>([&](auto i) {
        encode_row(
            symbols[kTurnRows - 1 - i], [](const auto& condition) { return LaneBool(condition); },
            [&](const LaneU32& word, const LaneBool& leaves, const WarpU32& leaving) {
              to_ -= popc(leaving) * 2;
              const LaneU32 place = (*to_ + excess % 2) / 2 + popc(leaving & k_.lanes_below());
              k_.if_(leaves, [&] { words.at(place).store(trunc<u16>(word)); });
            });
      });
    });
    // Single rows for the rest: if little room is left, or if the end of the output range is odd.
    k_.warp_loop([&](auto& rows) {
      rows.break_if((*row == 0) | (*to_ < *chunks_at_));
      encode_careful_row(begin, length, row, rows);
    });
  }

  // Encodes the row in front of `row`, whose last lanes may be past the chunk's end. Writes nothing if there is too
  // little room.
  template <class Loop>
  void encode_careful_row(const WarpU32& begin, const WarpU32& length, WarpVar& row, Loop& rows) {
    row -= kWarpLanes;
    const LaneU32 place = *row + k_.lane();
    const LaneBool active = place < length;
    const LaneU32 symbol = zext<u32>(item_.src.at(begin + select(active, place, 0)).load());
    WarpVar overrun(k_, 0);
    encode_row(
        symbol, [&](const auto& condition) { return active & condition; },
        [&](const LaneU32& word, const LaneBool& leaves, const WarpU32& leaving) {
          const WarpU32 bytes = popc(leaving) * 2;
          overrun = zext<u32>(bytes + *chunks_at_ > *to_);
          to_ = select(*overrun != 0, 0, *to_ - bytes);
          const LaneU32 at = *to_ + popc(leaving & k_.lanes_below()) * 2;
          k_.if_(leaves & (*overrun == 0), [&] { store_u16(item_.dst.at(at), word); });
        });
    rows.break_if(*overrun != 0);
  }

  // Moves the chunks from the end of the output range down to chunks_at_. An iteration reads all its words before it
  // writes.
  void move_down() {
    WarpVar from(k_, *to_), to(k_, *chunks_at_);
    const WarpU32 distance = *to_ - *chunks_at_;
    const auto move_bytes = [&](const WarpU32& count) {
      const LaneBool moves = k_.lane() < count;
      const LaneU32 byte = zext<u32>(item_.dst.at(*from + select(moves, k_.lane(), 0)).load());
      k_.sync_warp();
      k_.if_(moves, [&] { item_.dst.at(*to + k_.lane()).store(trunc<u8>(byte)); });
      k_.sync_warp();
      from += count;
      to += count;
    };
    k_.sync_warp();  // all words have been written
    k_.warp_loop([&](auto& once) {
      once.break_if((distance == 0) | (*from == item_.capacity));
      // Bytes up to an address at which a word may be written.
      const WarpU32 excess = trunc<u32>(item_.dst.address()) % 4;
      const auto aligned = item_.dst.align_down<4>().template as<u32>();
      move_bytes(min((0 - (excess + *to)) % 4, item_.capacity - *from));
      constexpr u32 kTurnBytes = 4 * kWarpLanes * kMoveWords;
      k_.warp_loop([&](auto& turns) {
        turns.break_if(item_.capacity - *from < kTurnBytes);
        std::array<LaneVar, kMoveWords> words{LaneVar(k_, 0), LaneVar(k_, 0), LaneVar(k_, 0), LaneVar(k_, 0)};
        unrolled<kMoveWords>([&](auto i) {
          words[i] = item_.dst.at(*from + i * (4 * kWarpLanes) + k_.lane() * 4).load_unaligned_u32();
        });
        k_.sync_warp();
        const auto target = aligned.at((*to + excess) / 4 + k_.lane());
        unrolled<kMoveWords>(
            [&](auto i) { target.at(std::integral_constant<u32, i * kWarpLanes>{}).store(*words[i]); });
        k_.sync_warp();
        from += kTurnBytes;
        to += kTurnBytes;
      });
      k_.warp_loop([&](auto& rest) {
        rest.break_if(*from == item_.capacity);
        move_bytes(min(item_.capacity - *from, kWarpLanes));
      });
      once.break_();
    });
  }

  TransformItem& item_;
  Kernel& k_;
  SymbolWords counts_, entries_;
  Option scale_bits_, chunk_bits_;
  WarpVar to_;  // the beginning of what has been written
  LaneVar state_;
  WarpVar chunks_at_;
};

}  // namespace

KernelDefinition rans_warp_encode() {
  return define_transform<Arg<"scale_bits", u32>, Arg<"chunk_bits", u32>>(
      kRansWarpEncode, {.registers = 72, .shared_bytes = 3 * kSymbols * sizeof(u32)}, N, "one warp a stream",
      [](TransformItem& item, const auto& fail_if, const Option& scale_bits, const Option& chunk_bits) {
        const auto counts = item.k.shared<u32, kSymbols, 16>("counts");
        const auto entries = item.k.shared<u32, 2 * kSymbols, 16>("entries");
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
        fail_if(item.src_size == 0, StreamStatus::ok);  // an empty stream
        Encoder(item, counts.data(), entries.data(), scale_bits, chunk_bits).encode(fail_if);
      });
}

}  // namespace ptxkit::kernels
