// Lanes and warps that wait for each other: CTA barriers, warp collectives, and what is said when nobody can go on.
#pragma once

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

// A barrier instruction of the running fragment; fills in what the fragment waits for. False when a fault stopped the
// CTA.
bool start_barrier(Warp& warp, const Code& code, Fragment& fragment);

// A 32-bit operand of one lane.
inline uint32_t value_of(Warp& warp, Ref ref, unsigned lane) { return at<uint32_t>(warp, ref)[lane]; }

// Runs whatever is complete now. Called when lanes began to wait, or left.
void settle(Warp& warp);

// Nobody can go on: says who waits where.
void report_deadlock(Cta& cta);

}  // namespace ptxkit::emulator
