// What wgmma's fence, commit_group and wait_group order: which registers a product still uses; and which of them
// tcgen05.ld still writes, up to its wait::ld. PTX ISA 9.0, 9.7.15.7 and 9.7.16.8.
//
// Both run at once here; that their registers may not be touched yet is a mark on each, as with asynchronous copies.
// The decoder puts a watch before every instruction that names such a register. Compilers pack what tcgen05.ld gives by
// `mov` before its wait, and ptxas makes no instruction of that: a move hands the mark on. An instruction that
// computes on registers alone is a note: LLVM, which sees no wait in the data, puts conversions before it, and ptxas
// 13.0 makes whatever reads such a register first wait for the load; the ISA promises nothing. What was computed counts as
// waited for. A store or a shuffle of the register itself is a fault. The registers of wgmma may not be read at all (9.7.15.7).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ptxkit::emulator {

struct Warp;
struct Frame;
struct MatrixForm;

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

// With the sanitizer: an instruction is about to use these registers; a product or a load is about to start.
void watch_registers(Warp& warp, const WatchedRegister* registers, uint32_t count);
// `computes`: the registers that are written are no copies.
void move_registers(Warp& warp, std::span<const MovedRegister> moves, bool computes);
void start_product(Warp& warp, const MatrixForm& form);
void start_load(Warp& warp, std::span<const uint32_t> registers);

}  // namespace ptxkit::emulator
