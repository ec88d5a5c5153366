// Running CTAs. See engine.cpp.
#pragma once

#include <memory>

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

enum class Progress : uint8_t { done, yielded, blocked };  // blocked: by CTAs of its cluster

// A CTA of the launch at its first instruction; restart() makes another one of it, keeping its storage.
std::unique_ptr<Cta> make_cta(Launch& launch, uint64_t turn);
void restart(Cta& cta, uint64_t turn);

// Runs for about `budget` warp instructions, to the end, or until nothing in it can go on without another CTA of its
// cluster. CTAs that wait for each other through memory need all of
// them to be run in turn.
Progress run(Cta& cta, uint64_t budget);

// CTAs of a cluster of which none can go on: waits for an mbarrier give up and look again. False when there is none, or
// when that has been done too often.
bool time_out(std::vector<std::unique_ptr<Cta>>& ctas);

// The same for one CTA whose lanes wait or are in a cycle.
bool let_time_out(Cta& cta);

// The pseudo-instruction before one that reads a clock: %clock and %globaltimer count warp instructions of the CTA.
void add_clock_refresh(Code& code);

}  // namespace ptxkit::emulator
