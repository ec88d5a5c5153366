// Races in the shared memory of one CTA: two threads touch one byte, one of them writes, and nothing orders them.
//
// The idea is that of vector clocks (FastTrack, Flanagan and Freund, PLDI 2009) with the clocks of a thread folded into
// what PTX programs really use. The emulator runs the threads one after the other, so one counter, advanced at
// every synchronisation, stamps every access; "ordered before me" is then "stamped no later than the last
// synchronisation between its thread and me", and that is one number for the whole CTA (barriers of all threads), one
// for each pair of warps (named barriers, atomics) and one for each pair of lanes of a warp (bar.warp.sync; a shuffle
// or a vote orders no memory). A byte remembers its last write and two reads by different threads. A third reader
// replaces the older of the two: a race against it can be missed, never invented. A store that does not change the
// bytes is no write here: threads that all store the same value do no harm.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace ptxkit::emulator {

class SharedRaces {
 public:
  SharedRaces(uint64_t size_bytes, uint32_t warp_count);
  void restart();  // a new CTA of the same shape

  struct Conflict {
    bool found = false;
    bool other_writes = false;
    uint32_t other_thread = 0;  // warp * 32 + lane
    uint32_t other_pc = 0;
    uint64_t offset = 0;  // of the byte
  };

  // `strong` accesses (atomic, volatile, relaxed and stronger) do not race with each other.
  Conflict read(uint32_t thread, uint64_t offset, unsigned size_bytes, uint32_t pc, bool strong);
  Conflict write(uint32_t thread, uint64_t offset, unsigned size_bytes, uint32_t pc, bool strong);

  void barrier_all();                                       // every thread of the CTA
  void barrier_some(const std::vector<uint32_t>& arrived);  // lanes by warp; a warp with any lane takes part whole
  void lanes(uint32_t warp, uint32_t members, uint32_t live);
  // Synchronisation through memory: what happened before a release of `offset` happens before what follows an acquire.
  void release(uint32_t thread, uint64_t offset);
  void acquire(uint32_t thread, uint64_t offset);

 private:
  // stamp 32 bits, thread 10, strong 1, pc 21; 0 is "none".
  struct Access {
    uint64_t bits = 0;
    uint32_t stamp() const { return static_cast<uint32_t>(bits >> 32); }
    uint32_t thread() const { return static_cast<uint32_t>(bits >> 22) & 1023; }
    bool strong() const { return (bits >> 21) & 1; }
    uint32_t pc() const { return static_cast<uint32_t>(bits) & 0x1fffff; }
  };
  struct Cell {
    Access write, first_read, second_read;
  };

  Access make(uint32_t thread, uint32_t pc, bool strong) const {
    return {uint64_t{now_} << 32 | uint64_t{thread} << 22 | uint64_t{strong} << 21 | (pc & 0x1fffff)};
  }
  bool ordered(Access access, uint32_t thread) const;
  bool conflicts(Access access, uint32_t thread, bool strong) const {
    return access.bits && access.thread() != thread && !(strong && access.strong()) && access.stamp() > all_ &&
           !ordered(access, thread);
  }
  void advance() { ++now_; }

  uint32_t warp_count_;
  uint32_t now_ = 1;
  uint32_t all_ = 0;  // last barrier of all threads
  std::vector<Cell> cells_;
  std::vector<uint32_t> warp_clock_;  // [warp][other warp]
  std::vector<uint32_t> whole_warp_;  // last synchronisation of all lanes of the warp
  std::vector<std::array<uint32_t, 32 * 32>>
      lane_clock_;  // [warp][lane][other lane]; empty until a partial mask is seen
  std::unordered_map<uint64_t, std::vector<uint32_t>> released_;  // by offset: clock of the releasing warp
};

}  // namespace ptxkit::emulator
