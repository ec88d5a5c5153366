// Records which threads reach the lines that a watched launch names (watch.hpp), and at which addresses.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

void watch(Launch& launch, std::span<const uint32_t> lines);
void note_visits(Warp& warp, uint32_t lanes);
void note_accesses(Warp& warp, uint32_t lanes, ptx::Space space, const uint64_t* addresses, uint64_t size_bytes);

}  // namespace ptxkit::emulator
