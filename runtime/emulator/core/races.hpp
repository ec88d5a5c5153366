// Races: two threads touch one byte, one of them writes, nothing orders them, and they are not both strong with scopes
// that reach the other. Who is ordered says order.hpp.
//
// A byte remembers its last write and two reads by different threads; the reads of other warps that these two replace
// are kept beside the cells, one for each warp and kMostDisplaced at most. With more readers, or where of a warp's
// lanes only some are waited for, a race can be missed, never invented. A store that leaves the bytes as they are is no
// write beside one that nothing orders before it: threads that all store the same value do no harm. Else it is one:
// that memory happened to hold this value before does not tell what it holds on another run.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/emulator/core/order.hpp"

namespace ptxkit::emulator {

// One access: which thread of the running CTA, and where in the program.
struct Toucher {
  const CtaOrder* order = nullptr;
  uint32_t thread = 0;  // warp * 32 + lane
  uint32_t pc = 0;
  Scope scope = Scope::none;  // of a strong access
};

struct Conflict {
  bool found = false;
  bool other_writes = false;
  bool scopes_too_narrow = false;  // both are strong
  uint32_t other_cta = 0, other_thread = 0;
  uint32_t other_pc = 0;
  uint64_t offset = 0;  // of the byte
};

// Who touched which bytes of a range of memory: of a CTA's shared memory, or of global memory in one launch.
class AccessHistory {
 public:
  // `parallel`: used by several host threads.
  AccessHistory(uint64_t size_bytes, bool parallel);

  // Accesses before the epoch `oldest` are of an earlier CTA and count for nothing.
  Conflict read(const Toucher& toucher, uint64_t offset, uint64_t size_bytes, Epoch oldest = 0);
  // Or read and write. `unchanged`: the bytes are what they were.
  Conflict write(const Toucher& toucher, uint64_t offset, uint64_t size_bytes, Epoch oldest = 0,
                 bool unchanged = false);

  // Nobody has touched these bytes.
  void forget(uint64_t offset, uint64_t size_bytes);

  static constexpr uint32_t kMostCodes = 1u << 19;  // later instructions are confused with earlier ones

 private:
  // epoch 32 bits, thread 10, scope 2, observed 1, pc 19; 0 is "none". `observed`: a strong read that found the cell's
  // last write, which is thereby ordered before what the reader does next.
  struct Access {
    uint64_t bits = 0;
    Epoch epoch() const { return static_cast<Epoch>(bits >> 32); }
    uint32_t thread() const { return static_cast<uint32_t>(bits >> 22) & 1023; }
    Scope scope() const { return Scope{static_cast<uint8_t>(bits >> 20 & 3)}; }
    bool observed() const { return bits >> 19 & 1; }
    void forget() { bits &= ~(uint64_t{1} << 19); }
    uint32_t pc() const { return static_cast<uint32_t>(bits) & (kMostCodes - 1); }
  };
  struct Cell {
    Access write, first_read, second_read;
  };
  struct Displaced {
    Access read;
    uint64_t warp = 0;  // CTA << 5 | warp
  };
  // Both of one thread in one epoch, and equally strong.
  static bool same(Access a, Access b) { return (a.bits ^ b.bits) >> 20 == 0; }
  // A page has a cell for each word until somebody touches less than a word of it.
  struct Page {
    std::vector<Cell> cells;
    // Reads that a cell has no room for: one list for each cell that ever had any, by its number less 1; 0: none.
    std::vector<uint16_t> list_of_cell;
    std::vector<std::vector<Displaced>> displaced;
    bool by_byte = false;
  };

  static bool conflicts(const Toucher& toucher, Access access, Epoch oldest);
  static bool write_conflicts(const Toucher& toucher, const Cell& cell, Epoch oldest);
  // A read of another warp that has left the cell.
  static void displace(const Toucher& toucher, Page& page, uint32_t cell, Access read, Access stays);
  static void note(const Toucher& toucher, Access access, bool writes, uint64_t offset, Conflict& conflict);
  template <class Visit>
  void visit(uint64_t offset, uint64_t size_bytes, Visit&& visit_cell);

  static constexpr unsigned kPageShift = 10, kLocks = 64;
  static constexpr size_t kMostDisplaced = 30;  // of a block's 32 warps two are in the cell
  const bool parallel_;
  std::vector<std::unique_ptr<Page>> pages_;
  std::unique_ptr<std::mutex[]> locks_;  // by page, modulo their number
};

}  // namespace ptxkit::emulator
