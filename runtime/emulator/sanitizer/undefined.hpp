// Undefined bits of registers: how an instruction hands them on.
#pragma once

#include <cstdint>

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

// Marks the destination of `code` for the lanes of `mask`, before it runs.
void propagate_undefined(Warp& warp, const Code& code, uint32_t mask);

}  // namespace ptxkit::emulator
