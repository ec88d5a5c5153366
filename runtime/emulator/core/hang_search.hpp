// What a search for launches that never end keeps: of each warp, and of the launch. sanitizer/hang.hpp says how it
// works.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "analyzer/ptx/names.hpp"

namespace ptxkit::emulator {

// What an instruction may change, beside registers.
enum class Effect : uint8_t {
  none,
  memory,          // notes its changes itself: st, atom, red
  unknown_memory,  // counts as a change
  unrepeatable,    // what it gives need not be the same the next time: a clock, %activemask
};

// Where lanes were, for when they come there again.
struct Anchor {
  uint32_t pc = 0xffffffff, mask = 0;
  uint32_t labels = 0, limit = 1;  // labels since then, and after how many the anchor is moved (Brent)
  uint64_t barriers = 0;           // CycleSearch::barriers at that time
  std::vector<uint8_t> state;
};

// A read of memory in a loop.
struct Look {
  uint32_t pc = 0xffffffff, lane = 0;
  ptx::Space space = ptx::Space::generic;
  uint64_t address = 0;
};

// Of one warp.
struct CycleSearch {
  uint64_t version = 0;  // HangSearch::version that all of this holds for
  std::vector<Anchor> anchors;
  uint32_t quiet = 0, at_barriers = 0;  // lanes that are in a cycle; those of the second kind pass barriers in it
  uint32_t pc = 0xffffffff;             // a label of the cycle that was found first
  uint64_t barriers = 0;                // where the warp has arrived
  std::vector<Look> looks;              // since an anchor was set last; a few
  std::vector<Look> cycle_looks;        // of the cycle that was found first

  uint32_t cycling() const { return quiet | at_barriers; }
  void forget();
};

// Of a launch.
struct HangSearch {
  std::atomic<bool> active = false;
  std::atomic<uint64_t> version = 0;     // goes up with each change that a search finds, and with each search
  std::atomic<uint64_t> next = 0;        // steps of the launch at which a search begins, or the active one ends
  std::atomic<uint64_t> gap = 0;         // between the last one and that
  std::atomic<uint64_t> idle_steps = 0;  // since a store to memory that others see
  std::once_flag prepared;
  std::vector<Effect> effects;  // by pc
  std::vector<uint8_t> ways;    // by pc: kReachesExit, kReachesReturn
  // By worker: version + 1 at which all of its blocks were stuck, or ~0 when it has nothing left to run.
  std::unique_ptr<std::atomic<uint64_t>[]> stuck_at;
  unsigned workers = 0;

  void start(unsigned worker_count);
};

}  // namespace ptxkit::emulator
