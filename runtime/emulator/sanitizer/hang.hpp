// Launches that never end: found by proof, not by patience.
//
// After a million warp instructions the launch is searched, for a while: every change of memory is then noted. Lanes
// that stand at a label with the same registers as before, with no change of memory in between, will come there again
// and again. Where all live lanes of all blocks that have begun do so, or wait for such lanes, and no block can begin,
// nothing will ever change. So it is where no path leads from a lane's instruction to an exit.
//
// A search ends with the first change, which in most kernels is a few instructions away, and without one after an
// eighth of what the launch has run: a long computation in registers is then left alone for twice as long as before.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/emulator/core/hang_search.hpp"
#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

// Begins or ends a search when the launch has run for `total` steps.
void schedule_search(Launch& launch, uint64_t total);
// In a search: memory that other threads see has changed; or only what this warp sees.
void note_change(Cta& cta);
void note_private_change(Warp& warp);
// A read of memory, where the block is searched.
void note_look(Warp& warp, const Code& code, uint32_t mask, const uint64_t* addresses);
// A fragment stands at a label; a collective of `members` runs.
void note_label(Warp& warp, const Fragment& fragment, uint32_t pc);
void note_collective(Warp& warp, const Code& code, uint32_t members);

// Begins a warp's turn in a search. False where it can never end, which has been reported.
bool begin_searched_turn(Warp& warp);
// Lets the waits of a block for mbarriers look again; false where it has none, or has done so too often.
using LetTimeOut = bool (*)(Cta& cta);
// Whether no live lane of the block can go on to anything new, time-outs included.
bool is_stuck(Cta& cta, LetTimeOut let_time_out);
// Ends the launch with a fault where all of it is stuck: called by each worker, with what it runs, when that is stuck
// and no block can begin.
void consider_hang(Launch& launch, unsigned worker, const std::vector<Cta*>& running, LetTimeOut let_time_out);
// The launch has run too long without a store.
bool is_idle(Launch& launch, Warp& warp);

}  // namespace ptxkit::emulator
