// Race detection. Two threads race if they access one byte, one of them writes, no happens-before order exists between
// them (order.hpp), and they are not both strong with scopes that reach the other.
//
// A byte stores its last write and two reads by different threads. Reads of other warps that these two replace are kept
// beside the cells, one for each warp and at most kMaxDisplaced. With more readers, or when only some lanes of a warp
// are synchronised with, a race can be missed but never invented. A store that leaves the bytes unchanged is not
// counted as a write if the earlier write is unordered with it: threads that all store the same value do no harm. It
// does count otherwise: that memory happened to hold this value does not mean that it does so in another run.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/emulator/core/order.hpp"

namespace ptxkit::emulator {

// One access: the thread of the running CTA, and the place in the program.
struct CurrentAccess {
  const CtaOrder* order = nullptr;
  uint32_t thread = 0;  // warp * 32 + lane
  uint32_t pc = 0;
  Scope scope = Scope::none;  // of a strong access; none for a weak one
};

struct Conflict {
  bool found = false;
  bool other_writes = false;
  bool scopes_too_narrow = false;  // both are strong, but their scopes do not reach
  uint32_t other_cta = 0, other_thread = 0;
  uint32_t other_pc = 0;
  uint64_t offset = 0;  // of the byte
};

// The accesses to a range of memory: a CTA's shared memory, or global memory in one launch.
class AccessHistory {
 public:
  // `parallel`: several host threads use it.
  AccessHistory(uint64_t size_bytes, bool parallel);

  // Records a read and returns the race that it is part of, if any. Accesses in epochs up to `oldest` belong to an
  // earlier CTA and are ignored.
  Conflict read(const CurrentAccess& current, uint64_t offset, uint64_t size_bytes, Epoch oldest = 0);
  // Records a write, or a read and write. `unchanged`: the bytes keep their values.
  Conflict write(const CurrentAccess& current, uint64_t offset, uint64_t size_bytes, Epoch oldest = 0,
                 bool unchanged = false);

  // Clears the record of these bytes.
  void forget(uint64_t offset, uint64_t size_bytes);

  static constexpr uint32_t kMaxCodes = 1u << 19;  // above that, instructions share numbers

 private:
  // epoch 32 bits, thread 10, scope 2, observed 1, pc 19; all 0 is "none". `observed`: a strong read that found the
  // cell's last write, which is thereby ordered before the reader's next accesses.
  struct Access {
    uint64_t bits = 0;
    Epoch epoch() const { return static_cast<Epoch>(bits >> 32); }
    uint32_t thread() const { return static_cast<uint32_t>(bits >> 22) & 1023; }
    Scope scope() const { return Scope{static_cast<uint8_t>(bits >> 20 & 3)}; }
    bool observed() const { return bits >> 19 & 1; }
    void clear_observed() { bits &= ~(uint64_t{1} << 19); }
    uint32_t pc() const { return static_cast<uint32_t>(bits) & (kMaxCodes - 1); }
  };
  struct Cell {
    Access write, first_read, second_read;
  };
  struct Displaced {
    Access read;
    uint64_t warp = 0;  // CTA << 5 | warp
  };
  // Whether both are of one thread in one epoch and equally strong.
  static bool same(Access a, Access b) { return (a.bits ^ b.bits) >> 20 == 0; }
  // A page has one cell for each word until an access touches part of a word; then one for each byte.
  struct Page {
    std::vector<Cell> cells;
    // Reads that no longer fit a cell: by cell, 1 + index in `displaced`; 0: none.
    std::vector<uint16_t> list_of_cell;
    std::vector<std::vector<Displaced>> displaced;
    bool by_byte = false;
  };

  static bool conflicts(const CurrentAccess& current, Access access, Epoch oldest);
  static bool write_conflicts(const CurrentAccess& current, const Cell& cell, Epoch oldest);
  // Keeps a read of another warp that is replaced in its cell.
  static void displace(const CurrentAccess& current, Page& page, uint32_t cell, Access read, Access stays);
  static void note(const CurrentAccess& current, Access access, bool writes, uint64_t offset, Conflict& conflict);
  template <class Visit>
  void visit(uint64_t offset, uint64_t size_bytes, Visit&& visit_cell);

  static constexpr unsigned kPageShift = 10, kLocks = 64;
  static constexpr size_t kMaxDisplaced = 30;  // of a CTA's 32 warps two are in the cell
  const bool parallel_;
  std::vector<std::unique_ptr<Page>> pages_;
  std::unique_ptr<std::mutex[]> locks_;  // by page, modulo kLocks
};

}  // namespace ptxkit::emulator
