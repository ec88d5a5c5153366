// Functions shared by mbarriers, asynchronous copies and the engine.
#pragma once

#include <string>
#include <vector>

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

// A place in the shared memory of a CTA of the cluster.
struct SharedPlace {
  Cta* cta = nullptr;
  uint64_t offset = 0;
};

// Resolves a shared or generic address of one lane, of `size_bytes` bytes. Returns false after a fault.
bool find_shared(Warp& warp, const Code& code, unsigned lane, uint64_t address, uint64_t size_bytes,
                 unsigned align_bytes, SharedPlace& place);

// The mbarrier at `place`; null after a fault.
Mbarrier* find_mbarrier(Warp& warp, unsigned lane, const SharedPlace& place);
void expect_bytes(Warp& warp, unsigned lane, const SharedPlace& place, Mbarrier& barrier, int64_t bytes);
// `released`: lanes whose accesses so far are ordered before the accesses after the phase.
void arrive_at(Warp& warp, unsigned lane, const SharedPlace& place, Mbarrier& barrier, uint32_t count, bool drops,
               uint32_t released);
// Begins the next phase if the current one is complete.
void advance_phase(const SharedPlace& place, Mbarrier& barrier);

// mbarrier.try_wait for the lanes of a waiting fragment, whose frame is bound. Returns true if the fragment may
// continue, and has then set its predicates. With `times_out` it continues in any case.
bool try_mbarrier(Warp& warp, const Code& code, uint32_t mask, bool times_out);
std::string mbarrier_text(Warp& warp, const Code& code, unsigned lane);

// Makes the bytes of a range usable.
void finish_range(Cta& cta, const AsyncRange& range);

// The copies and groups that a lane or an mbarrier may have pending. A program that waits for none of them would take
// memory without end: of more, the older half counts as complete, as it long is on a device.
inline constexpr size_t kMostPendingCopies = 1u << 14, kMostPendingGroups = 1u << 10;
void add_pending(Cta& cta, std::vector<AsyncRange>& ranges, const AsyncRange& range);

}  // namespace ptxkit::emulator
