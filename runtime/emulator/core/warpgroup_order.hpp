// Registers that wgmma and tcgen05.ld still use. sanitizer/pending_registers.hpp describes the checks.
#pragma once

#include <cstdint>
#include <vector>

namespace ptxkit::emulator {

struct Frame;

// A register that an instruction names, and whether the instruction writes it.
struct WatchedRegister {
  uint32_t ref = 0;
  bool written = false;
};

// A register that a move writes and the one it reads; kUnwatched if it cannot be pending.
struct MovedRegister {
  static constexpr uint32_t kUnwatched = 0xffffffff;
  uint32_t to = kUnwatched, from = kUnwatched;
};

struct WarpgroupOrder {
  // A register of a product or load that has not been waited for.
  struct Pending {
    const Frame* frame = nullptr;
    uint32_t ref = 0;
    bool is_result = false;  // may not even be read
    bool is_load = false;    // of tcgen05.ld; otherwise of a product
    bool is_moved = false;   // a copy of such a register or a value computed from it; it may be overwritten
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
