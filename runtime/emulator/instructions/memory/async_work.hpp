// What mbarriers, asynchronous copies and the engine share.
#pragma once

#include <string>

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

// A place in the shared memory of a CTA of the cluster.
struct SharedPlace {
  Cta* cta = nullptr;
  uint64_t offset = 0;
};

// Finds `size_bytes` at a shared or generic address of one lane; false after a fault.
bool find_shared(Warp& warp, const Code& code, unsigned lane, uint64_t address, uint64_t size_bytes,
                 unsigned align_bytes, SharedPlace& place);

// The mbarrier there; null after a fault.
Mbarrier* find_mbarrier(Warp& warp, unsigned lane, const SharedPlace& place);
void expect_bytes(Warp& warp, unsigned lane, const SharedPlace& place, Mbarrier& barrier, int64_t bytes);
// `released`: whose accesses so far are ordered before what follows the phase.
void arrive_at(Warp& warp, unsigned lane, const SharedPlace& place, Mbarrier& barrier, uint32_t count, bool drops,
               uint32_t released);
// Begins the next phase where this one is complete.
void settle_mbarrier(const SharedPlace& place, Mbarrier& barrier);

// mbarrier.try_wait for the lanes of a waiting fragment, whose frame is bound: true when it may go on, with its
// predicates set. `times_out`: it goes on whatever they are.
bool try_mbarrier(Warp& warp, const Code& code, uint32_t mask, bool times_out);
std::string mbarrier_text(Warp& warp, const Code& code, unsigned lane);

// The bytes of a range may be used from now on.
void finish_range(Cta& cta, const AsyncRange& range);

}  // namespace ptxkit::emulator
