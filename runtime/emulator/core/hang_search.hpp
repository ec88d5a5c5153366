// State of a search for launches that never end, of each warp and of the launch. sanitizer/hang.hpp describes the
// search.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "analyzer/ptx/names.hpp"
#include "support/once.hpp"

namespace ptxkit::emulator {

// What an instruction may change, apart from registers.
enum class Effect : uint8_t {
  none,
  memory,          // reports its changes itself: st, atom, red
  unknown_memory,  // counts as a change
  unrepeatable,    // may give another result the next time: a clock, %activemask
};

// A recorded position and state of lanes, to recognise when they return to it.
struct Anchor {
  uint32_t pc = 0xffffffff, mask = 0;
  uint32_t labels = 0, limit = 1;  // labels passed since then, and the count at which the anchor moves (Brent)
  uint64_t barriers = 0;           // CycleSearch::barriers at that time
  std::vector<uint8_t> state;
};

// A read of memory in a loop.
struct PolledRead {
  uint32_t pc = 0xffffffff, lane = 0;
  ptx::Space space = ptx::Space::generic;
  uint64_t address = 0;
};

// Of one warp.
struct CycleSearch {
  uint64_t version = 0;  // the HangSearch::version for which this state holds
  std::vector<Anchor> anchors;
  uint32_t in_cycle = 0,
           in_barrier_cycle = 0;  // lanes that are in a cycle; the cycle of those in_barrier_cycle passes barriers
  uint32_t pc = 0xffffffff;       // a label of the cycle that was found first
  uint64_t barriers = 0;          // at which the warp has arrived
  std::vector<PolledRead> polled_reads;  // since the last anchor was set; only a few
  std::vector<PolledRead> cycle_reads;   // of the cycle that was found first

  uint32_t cycling() const { return in_cycle | in_barrier_cycle; }
  void forget();
};

// Of a launch.
struct HangSearch {
  std::atomic<bool> active = false;
  std::atomic<uint64_t> version = 0;     // increases with each change that a search finds, and with each search
  std::atomic<uint64_t> next = 0;        // steps of the launch at which the next search begins, or the active one ends
  std::atomic<uint64_t> gap = 0;         // steps between the last search and the next one
  std::atomic<uint64_t> idle_steps = 0;  // since the last store to memory that other threads see
  Once prepared;
  std::vector<Effect> effects;          // by pc
  std::vector<uint8_t> reachable_ends;  // by pc: kReachesExit, kReachesReturn
  // By worker: version + 1 at which all of its CTAs were stuck, or ~0 if it has nothing left to run.
  std::unique_ptr<std::atomic<uint64_t>[]> stuck_at;
  unsigned workers = 0;

  void start(unsigned worker_count);
};

}  // namespace ptxkit::emulator
