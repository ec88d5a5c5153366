// Execution of CTAs. See engine.cpp.
#pragma once

#include <memory>

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

enum class Progress : uint8_t { done, yielded, blocked };  // blocked: waits for CTAs of its cluster

// make_cta returns a CTA of the launch at its first instruction; `turn` is its position in the launch. restart() turns
// it into another one and keeps its storage.
std::unique_ptr<Cta> make_cta(Launch& launch, uint64_t turn);
void restart(Cta& cta, uint64_t turn);

// Runs for about `budget` warp instructions, to the end, or until it cannot continue without another CTA of its
// cluster. CTAs that wait for each other through memory must all be run in turn.
Progress run(Cta& cta, uint64_t budget);

// For a cluster whose CTAs are all blocked: their mbarrier waits time out and test again. Returns false if there is
// none, or if that has happened too often.
bool time_out_cluster(std::vector<std::unique_ptr<Cta>>& ctas);

// The same for one CTA whose lanes wait or are in a cycle.
bool time_out_waits(Cta& cta);

// Makes `code` the pseudo-instruction before one that reads a clock: %clock and %globaltimer count warp instructions of
// the CTA.
void add_clock_refresh(Code& code);

}  // namespace ptxkit::emulator
