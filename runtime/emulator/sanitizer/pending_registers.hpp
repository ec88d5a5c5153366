// Registers that a product still uses, ordered by wgmma's fence, commit_group and wait_group; and registers that
// tcgen05.ld still writes, up to its wait::ld. PTX ISA 9.0, 9.7.15.7 and 9.7.16.8.
//
// The emulator runs both at once. A mark on each register records that it may not be touched yet, as for asynchronous
// copies. The decoder puts a watch before every instruction that names such a register. Compilers pack the results of
// tcgen05.ld by `mov` before its wait, for which ptxas makes no instruction: a move hands the mark on. An instruction
// that only computes on registers gives a note: LLVM, which sees no data dependence on the wait, puts conversions
// before it, and ptxas 13.0 makes the first reader of such a register wait for the load; the ISA promises nothing. The
// computed value counts as waited for. A store or shuffle of the register itself is a fault. The registers of wgmma may
// not be read at all (9.7.15.7).
#pragma once

#include <cstdint>
#include <span>

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

// With the sanitizer, before an instruction uses these registers; before a product or a load starts.
void watch_registers(Warp& warp, const WatchedRegister* registers, uint32_t count);
// `computes`: the written registers are computed values, not copies.
void move_registers(Warp& warp, std::span<const MovedRegister> moves, bool computes);
void start_product(Warp& warp, const MatrixForm& form);
void start_load(Warp& warp, std::span<const uint32_t> registers);

}  // namespace ptxkit::emulator
