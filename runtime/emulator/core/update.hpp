// Updates of one element of memory by one operand: the operation of atom, red, bulk reductions and asynchronous
// reductions.
#pragma once

#include <span>

#include "analyzer/ptx/names.hpp"

namespace ptxkit::emulator {

struct Update {
  // Returns the new bits of an element of up to 64 bits; `c` is the second operand of cas. Elements of 128 bits support
  // only exch and cas and are handled elsewhere.
  uint64_t (*apply)(uint64_t old, uint64_t b, uint64_t c) = nullptr;
  unsigned element_bytes = 0;
  ptx::Mod operation = ptx::Mod::unknown;
  bool is_floating = false, is_pair = false;  // is_pair: two halves
};

// The unit that performs an addition. Atomics in global memory flush subnormal numbers of single precision; atomics in
// shared memory do not (PTX ISA 9.0, 9.7.13.6); reductions of tensors do if their map says so. Where the ISA is silent
// this follows an H200: bulk reductions do not flush, and in global memory a NaN of double precision stays unchanged,
// the operand's before the one in memory.
enum class Adder : uint8_t { of_threads, of_memory, of_memory_flushing };

// `apply` is null if there is no such operation.
Update find_update(ptx::Mod operation, ptx::Type type, Adder adder);

// Updates the element at `place` and returns its old bits. `alone`: no other host thread runs the launch.
uint64_t apply_update(const Update& update, uint8_t* place, uint64_t b, uint64_t c, bool alone);

// The operation among an instruction's words; Mod::unknown if there is none.
ptx::Mod update_operation(std::span<const ptx::Mod> words);

}  // namespace ptxkit::emulator
