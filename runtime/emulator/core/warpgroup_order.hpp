// Registers that wgmma and tcgen05.ld have not finished with. sanitizer/pending_registers.hpp says what is done with
// them.
#pragma once

#include <cstdint>
#include <vector>

namespace ptxkit::emulator {

struct Frame;

// One register that an instruction names: its Ref, and whether it is written.
struct WatchedRegister {
  uint32_t ref = 0;
  bool written = false;
};

// A register that an instruction writes, and one that it takes; kUnwatched where that is none that can be pending.
struct MovedRegister {
  static constexpr uint32_t kUnwatched = 0xffffffff;
  uint32_t to = kUnwatched, from = kUnwatched;
};

struct WarpgroupOrder {
  // A register of a product or a load that has not been waited for.
  struct Pending {
    const Frame* frame = nullptr;
    uint32_t ref = 0;
    bool is_result = false;  // may not even be read
    bool is_load = false;    // of tcgen05.ld; else of a product
    bool is_moved = false;   // a copy of such a register, or computed from it; it may be written
    uint32_t pc = 0;
    uint32_t shape_n = 0;
    uint64_t group = 0;  // number of commits before it
  };
  struct Written {
    const Frame* frame = nullptr;
    uint32_t ref = 0;
  };
  bool fenced = false;
  uint64_t commits = 0;
  std::vector<Pending> pending;
  std::vector<Written> written;  // since the last fence

  void fence();
  void commit() { ++commits; }
  void wait(uint64_t groups_left);
  void wait_loads();
  void forget_moved(const Frame* frame, uint32_t ref);
};

}  // namespace ptxkit::emulator
