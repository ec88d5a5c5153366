// Lanes and warps that wait for each other: CTA barriers, warp collectives, and the report of a deadlock.
#pragma once

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

// Executes a barrier instruction of the running fragment and sets what the fragment waits for. Returns false if a fault
// stopped the CTA.
bool start_barrier(Warp& warp, const Code& code, Fragment& fragment);

// A 32-bit operand of one lane.
inline uint32_t value_of(Warp& warp, Ref ref, unsigned lane) { return at<uint32_t>(warp, ref)[lane]; }

// Runs every collective and barrier that is complete. Called when lanes have begun to wait or have exited.
void complete_waits(Warp& warp);

// No lane of the CTA can run: reports which threads wait where.
void report_deadlock(Cta& cta);

}  // namespace ptxkit::emulator
