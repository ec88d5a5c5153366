// What the lanes of one warp touch at one instruction, as offsets from an unknown common start: enough to count bank
// conflicts and memory sectors.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/context.hpp"

namespace ptxkit::rules {

struct WarpFootprint {
  std::array<int64_t, 32> offset_bytes{};
  uint32_t active = 0;  // lanes
};

// Of the first warp of a block whose first row has at least 32 threads, in the first iteration of the loops around.
// Nothing where an address depends on what lanes cannot know from their place, other than a number common to all.
std::optional<WarpFootprint> warp_footprint(Context& context, const ptx::Access& access);

// Most accesses that one bank serves, in the phases in which hardware takes a request: 32 banks of 4 bytes; words of 8
// bytes by half warps, of 16 by quarters. 1 is free of conflicts. Source: CUDA C++ Programming Guide, shared memory.
unsigned conflict_degree(const WarpFootprint& footprint, uint32_t width_bytes);

// An access to shared memory, for pictures: what it touches, and where that is known, by which lanes.
struct SharedAccess {
  ptx::Access access;
  ptx::VariableId object = ptx::kNone;  // where one variable alone can be meant
  std::optional<WarpFootprint> footprint;
};
std::vector<SharedAccess> shared_accesses(Context& context);  // in program order

// 32-byte sectors touched, and the least that the active lanes' distinct bytes need.
struct Sectors {
  unsigned touched = 0, least = 0;
};
Sectors sectors_of(const WarpFootprint& footprint, uint32_t width_bytes);

}  // namespace ptxkit::rules
