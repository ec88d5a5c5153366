// Propagation of undefined bits through registers.
#pragma once

#include <cstdint>

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

// Sets the undefined bits of the destination of `code` for the lanes of `mask`. Call it before the instruction runs.
void propagate_undefined(Warp& warp, const Code& code, uint32_t mask);

}  // namespace ptxkit::emulator
