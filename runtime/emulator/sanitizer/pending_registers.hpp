// What wgmma's fence, commit_group and wait_group order: which registers a product still uses; and which of them
// tcgen05.ld still writes, up to its wait::ld. PTX ISA 9.0, 9.7.15.7 and 9.7.16.8.
//
// Both run at once here; that their registers may not be touched yet is a mark on each, as with asynchronous copies.
// The decoder puts a watch before every instruction that names such a register. Compilers pack what tcgen05.ld gives by
// `mov` before its wait, and ptxas makes no instruction of that: a move hands the mark on. An instruction that
// computes on registers alone is a note: LLVM, which sees no wait in the data, puts conversions before it, and ptxas
// 13.0 makes whatever reads such a register first wait for the load; the ISA promises nothing. What was computed counts
// as waited for. A store or a shuffle of the register itself is a fault. The registers of wgmma may not be read at all
// (9.7.15.7).
#pragma once

#include <cstdint>
#include <span>

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

// With the sanitizer: an instruction is about to use these registers; a product or a load is about to start.
void watch_registers(Warp& warp, const WatchedRegister* registers, uint32_t count);
// `computes`: the registers that are written are no copies.
void move_registers(Warp& warp, std::span<const MovedRegister> moves, bool computes);
void start_product(Warp& warp, const MatrixForm& form);
void start_load(Warp& warp, std::span<const uint32_t> registers);

}  // namespace ptxkit::emulator
