// What wgmma's fence, commit_group and wait_group order: which registers a product still uses. PTX ISA 9.0, 9.7.15.7.
//
// Products run at once here; that their registers may not be touched yet is a mark on each, as with asynchronous
// copies. The decoder puts a watch before every instruction that names a register of a product.
#pragma once

#include <cstdint>
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

struct WarpgroupOrder {
  // A register of a product that has not been waited for.
  struct Pending {
    const Frame* frame = nullptr;
    uint32_t ref = 0;
    bool is_result = false;  // may not even be read
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
};

// With the sanitizer: an instruction is about to use these registers; a product is about to start.
void watch_registers(Warp& warp, const WatchedRegister* registers, uint32_t count);
void start_product(Warp& warp, const MatrixForm& form);

}  // namespace ptxkit::emulator
