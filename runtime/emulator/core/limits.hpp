// The limits of a launch: the caller's request to stop, and the number of steps.
#pragma once

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

// Whether the launch is at a limit. Then it stops, with a fault at this warp.
bool stop_at_limit(Warp& warp);

// Counts an instruction that works as long as many others: its bytes or products are steps of Launch::max_steps. At a
// limit the launch stops.
void spend_on_bytes(Warp& warp, uint64_t bytes);
void spend_on_products(Warp& warp, uint64_t products);

}  // namespace ptxkit::emulator
