// Table construction of the FSE kernels: the symbols spread over the states, and the x that each state represents.
#pragma once

#include "kernels/entropy/frequencies.hpp"
#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/lane_bits.hpp"
#include "kernels/entropy/lane_format.hpp"
#include "kernels/transform.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

inline constexpr uint32_t kMaxStates = 1u << kMaxAccuracyBits;

// An encoder's table: fse_reference.cpp explains the relation of states and places.
struct FseEncoderTable {
  SymbolWords words;  // for each symbol its frequency, and from bit 16 on the start of its slots
  dsl::Ptr<dsl::shared, dsl::u16, 16, dsl::Rate::warp> next;  // the state after a symbol, indexed by x

  // Codes symbol `s` in `state`: calls emit(field, bits) and returns the next state.
  template <class Emit>
  LaneU32 code(const LaneU32& state, const LaneU32& s, const Emit& emit) const {
    using namespace dsl;
    const LaneU32 word = words.at(s).load();
    const LaneU32 frequency = word & 0xFFFF;
    const LaneU32 most = clz(frequency) - clz(state);
    const LaneU32 count = most - zext<u32>((state >> most) < frequency);
    emit(state & ((1 << count) - 1), count);
    return zext<u32>(next.at((word >> 16) + (state >> count) - frequency).load());
  }
};

// Spreads the symbols: the symbol whose slots contain t goes to place t * spread_step. symbols.at(place) is the place's
// symbol, a u8 in shared memory. `words` receives each symbol's frequency and, in the high half, the start of its
// slots.
template <class Symbols>
void spread(dsl::Kernel& k, LaneSymbols& frequencies, const WarpU32& state_count, const Symbols& symbols,
            const SymbolWords& words) {
  using namespace dsl;
  LaneVar start(k, exclusive_sum(frequencies.sum()));
  for_lane_symbols(k, [&](auto j, const LaneU32& s) {
    words.at(s).store(*frequencies[j] | *start << 16);
    start += *frequencies[j];
  });
  k.sync_warp();
  const WarpU32 step = (state_count >> 1) + (state_count >> 3) + 3;
  k.range(k.constant<u32>(0), u32{kSymbols}, 1, [&](const auto& s) {
    const WarpU32 word = broadcast(words.at(s).load());
    for_each_lane(k, word & 0xFFFF, [&](const LaneU32& i) {
      symbols.at(((word >> 16) + i) * step & (state_count - 1)).store(trunc<u8>(s));
    });
  });
  k.sync_warp();
}

// Calls body(place, s, i) for every place in ascending order, which is place number i of symbol s. `seen` has a word
// for each symbol. The body may overwrite the place's symbol.
template <class Symbols, class Body>
void for_each_place(dsl::Kernel& k, const WarpU32& state_count, const Symbols& symbols, const SymbolWords& seen,
                    const Body& body) {
  using namespace dsl;
  for_lane_symbols(k, [&](auto, const LaneU32& s) { seen.at(s).store(k.constant<u32>(0)); });
  k.sync_warp();
  k.range(k.constant<u32>(0), state_count, kWarpLanes, [&](const auto& first) {
    const LaneU32 place = first + k.lane();
    const LaneU32 s = zext<u32>(symbols.at(place).load());
    const LaneU32 same = match_any(s);
    const LaneU32 before = seen.at(s).load();
    const LaneU32 i = before + popc(same & k.lanes_below());
    body(place, s, i);
    k.sync_warp();  // every lane has read before one writes
    k.if_((same >> k.lane()) == 1, [&] { seen.at(s).store(i + 1); });
    k.sync_warp();
  });
}

}  // namespace ptxkit::kernels
