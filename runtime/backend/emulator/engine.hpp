// Running CTAs. See engine.cpp.
#pragma once

#include <memory>

#include "runtime/backend/emulator/state.hpp"

namespace ptxkit::emulator {

enum class Progress : uint8_t { done, yielded };

// A CTA of the launch at its first instruction; restart() makes another one of it, keeping its storage.
std::unique_ptr<Cta> make_cta(Launch& launch, uint64_t number);
void restart(Cta& cta, uint64_t number);

// Runs for about `budget` warp instructions or to the end. CTAs that wait for each other through memory need all of
// them to be run in turn.
Progress run(Cta& cta, uint64_t budget);

// The pseudo-instruction before one that reads a clock: %clock and %globaltimer count warp instructions of the CTA.
void add_clock_refresh(Code& code);

}  // namespace ptxkit::emulator
