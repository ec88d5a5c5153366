// One element of memory and one operand: what atom, red, bulk reductions and asynchronous reductions do.
#pragma once

#include <span>

#include "analyzer/ptx/names.hpp"

namespace ptxkit::emulator {

struct Update {
  // The new bits of an element of up to 64 bits; `c` is the second operand of cas. Elements of 128 bits know only exch
  // and cas and go another way.
  uint64_t (*apply)(uint64_t old, uint64_t b, uint64_t c) = nullptr;
  unsigned element_bytes = 0;
  ptx::Mod operation = ptx::Mod::unknown;
  bool is_floating = false, is_pair = false;  // is_pair: two halves
};

// Who adds. Atomics in global memory flush subnormal numbers of single precision, those in shared memory do not (PTX
// ISA 9.0, 9.7.13.6), tensors where their map says so. What the ISA leaves open, an H200 has so: bulk reductions do not
// flush; in global memory a NaN of double precision stays as it is, the operand's before the one that lies there.
enum class Adder : uint8_t { of_threads, of_memory, of_memory_flushing };

// Null `apply` where there is no such operation.
Update find_update(ptx::Mod operation, ptx::Type type, Adder adder);

// Applies it to the bytes at `place`; returns the old bits. `alone`: no other host thread runs the launch.
uint64_t apply_update(const Update& update, uint8_t* place, uint64_t b, uint64_t c, bool alone);

// The operation among an instruction's words; Mod::unknown where there is none.
ptx::Mod update_operation(std::span<const ptx::Mod> words);

}  // namespace ptxkit::emulator
