// Detects launches that never end, by proof instead of a time limit.
//
// After a million warp instructions a search of the launch begins and runs for a while; during a search every change of
// memory is noted. Lanes that return to a label with the same registers, without a change of memory in between, will
// return to it forever. If all live lanes of all CTAs that have begun do so or wait for such lanes, and no further CTA
// can begin, the launch never ends. The same holds if no path leads from a lane's instruction to an exit, and if lanes
// count without an end. Lanes that count up to an end after the limit of idle steps meet that limit (counting.hpp).
//
// A search ends with the first change, which in most kernels is a few instructions away. Without one it ends after an
// eighth of the instructions that the launch has run; the next search then begins after twice as long, so that a long
// computation in registers is not slowed.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/emulator/core/hang_search.hpp"
#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

// Begins or ends a search after `total` steps of the launch.
void schedule_search(Launch& launch, uint64_t total);
// During a search: memory that other threads see has changed; or only memory of this warp.
void note_change(Cta& cta);
void note_private_change(Warp& warp);
// During a search: this warp reads memory.
void note_polled_read(Warp& warp, const Code& code, uint32_t mask, const uint64_t* addresses);
// During a search: a fragment is at a label; a collective of `members` runs.
void note_label(Warp& warp, const Fragment& fragment, uint32_t pc);
void note_collective(Warp& warp, const Code& code, uint32_t members);

// Begins a warp's turn during a search. Returns false if the warp can never end, which it has then reported.
bool begin_searched_turn(Warp& warp);
// Lets the mbarrier waits of a CTA time out and test again. Returns false if it has none or has timed out too often.
using TimeOutWaits = bool (*)(Cta& cta);
// Whether no live lane of the CTA can make progress, time-outs included.
bool is_stuck(Cta& cta, TimeOutWaits time_out_waits);
// Ends the launch with a fault if all of it is stuck. Each worker calls it with the CTAs that it runs when those are
// stuck and no further CTA can begin.
void check_for_hang(Launch& launch, unsigned worker, const std::vector<Cta*>& running, TimeOutWaits time_out_waits);
// Whether the launch has run too long without a store.
bool is_idle(Launch& launch, Warp& warp);

}  // namespace ptxkit::emulator
