// The rANS encoders' table of symbols, and the encoding step. The division is the high half of a product with the
// reciprocal, which is the quotient or one less, and is then corrected.
#pragma once

#include "kernels/entropy/frequencies.hpp"

namespace ptxkit::kernels {

// Writes two words for each symbol: its frequency with the start of its slots in the high half, and the reciprocal of
// its frequency.
inline void write_rans_entries(dsl::Kernel& k, LaneSymbols& frequencies, const SymbolWords& entries) {
  using namespace dsl;
  LaneVar start(k, exclusive_sum(frequencies.sum()));
  for_lane_symbols(k, [&](auto j, const LaneU32& s) {
    const auto entry = entries.at(times<2>(s));
    entry.store(*frequencies[j] | *start << 16);
    entry.template at<1>().store(~k.constant<u32>(0) / max(*frequencies[j], 1));
    start += *frequencies[j];
  });
  k.sync_warp();
}

class RansEntry {
 public:
  RansEntry(const SymbolWords& entries, const LaneU32& symbol)
      : RansEntry(entries.at(dsl::times<2>(symbol)).load_vector<2>()) {}

  // Whether the state emits its low half, a word, before it takes the symbol.
  template <class ScaleBits>
  LaneBool gives_up(const LaneU32& state, const ScaleBits& scale_bits) const {
    return state >> (32 - scale_bits) >= frequency_;
  }
  // The state after the symbol.
  template <class ScaleBits>
  LaneU32 next(const LaneU32& state, const ScaleBits& scale_bits) const {
    const LaneU32 quotient = dsl::mul_hi(state, reciprocal_);
    const LaneU32 complement = dsl::shift_left(1, scale_bits) - frequency_;
    const LaneU32 one_more = dsl::select(state - quotient * frequency_ >= frequency_, complement, 0);
    return state + start_ + quotient * complement + one_more;
  }

 private:
  explicit RansEntry(const std::array<LaneU32, 2>& words)
      : frequency_(words[0] & 0xFFFF), start_(words[0] >> 16), reciprocal_(words[1]) {}

  LaneU32 frequency_, start_, reciprocal_;
};

}  // namespace ptxkit::kernels
