// Instructions that the lanes of a warp execute together: shfl, vote, match, redux, elect, bar.warp.sync.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

// Executes a collective for the lanes of all `parts`, which together are `members`.
void run_collective(Warp& warp, const Code& code, std::span<const Fragment> parts, uint32_t members);

}  // namespace ptxkit::emulator
