// Launches that never end: found by proof, not by patience.
//
// After a million warp instructions the launch is searched, for a while: every change of memory is then noted. Lanes
// that stand at a label with the same registers as before, with no change of memory in between, will come there again
// and again. Where all live lanes of all blocks that have begun do so, or wait for such lanes, and no block can begin,
// nothing will ever change. So it is where no path leads from a lane's instruction to an exit.
//
// A search ends with the first change, which in most kernels is a few instructions away, and without one after an
// eighth of what the launch has run: a long computation in registers is then left alone for twice as long as before.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "analyzer/ptx/names.hpp"

namespace ptxkit::emulator {

struct Cta;
struct Fragment;
struct FunctionImage;
struct Launch;
struct Warp;
struct Code;

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

// Begins or ends a search when the launch has run for `total` steps.
void schedule_search(Launch& launch, uint64_t total);
// In a search: memory that other threads see has changed; or only what this warp sees.
void note_change(Cta& cta);
void note_private_change(Warp& warp);
// A read of memory, where the block is searched.
void note_look(Warp& warp, const Code& code, uint32_t mask, const uint64_t* addresses);
// A fragment stands at a label; a collective of `members` runs.
void note_label(Warp& warp, const Fragment& fragment, uint32_t pc);
void note_collective(Warp& warp, const Code& code, uint32_t members);

// Begins a warp's turn in a search. False where it can never end, which has been reported.
bool begin_searched_turn(Warp& warp);
// Whether no live lane of the block can go on to anything new. Lets waits for mbarriers time out first.
bool is_stuck(Cta& cta);
// Ends the launch with a fault where all of it is stuck: called by each worker, with what it runs, when that is stuck
// and no block can begin.
void consider_hang(Launch& launch, unsigned worker, const std::vector<Cta*>& running);
// The launch has run too long without a store.
bool is_idle(Launch& launch, Warp& warp);

}  // namespace ptxkit::emulator
