// Loops that count: how often lanes go round before the way that they take can change, by arithmetic and not by
// waiting.
//
// One round is run on a copy of the registers. Where every decision in it depends on registers that a round leaves as
// they are, and on comparisons of such a register with one to which each round adds the same number, the next rounds
// are the same up to the first one in which a comparison turns out otherwise, and that one can be calculated (modulo
// the power of two). Memory must not change meanwhile, as for every search for hangs.
#pragma once

#include <cstdint>
#include <optional>

namespace ptxkit::emulator {

struct Warp;
struct Fragment;

struct CountedLoop {
  static constexpr uint64_t kEndless = ~uint64_t{0};
  uint64_t rounds = 0;  // that are the same, at least; or kEndless
  uint64_t steps = 0;   // warp instructions of a round

  // At least as many warp instructions follow.
  bool lasts(uint64_t warp_instructions) const { return rounds == kEndless || rounds >= warp_instructions / steps + 1; }
};

// The loop through `pc`, to which the lanes of `fragment`, which are at `from`, come first; nothing where they do not
// come back there, or where it is not known for how long. Registers stay as they are.
std::optional<CountedLoop> find_counted_loop(Warp& warp, const Fragment& fragment, uint32_t from, uint32_t pc);

// The least n with (start + n * step) mod 2^bits below `length`; nothing where there is none.
std::optional<uint64_t> first_below(uint64_t start, uint64_t step, unsigned bits, unsigned __int128 length);

}  // namespace ptxkit::emulator
