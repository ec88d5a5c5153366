// What an update makes of undefined bits, and whether it is a use of what nobody has written.
#pragma once

#include <cstdint>

#include "analyzer/ptx/names.hpp"
#include "runtime/emulator/core/update.hpp"

namespace ptxkit::emulator {

struct Warp;

// An element of memory before the update, and its operands; or which of their bits are undefined.
struct UpdateBits {
  uint64_t old = 0, b = 0, c = 0;
};

struct UndefinedUpdate {
  uint64_t bits = 0;     // of the element after the update
  bool decides = false;  // what nobody has written has a part in it that no later mask can take out
};

// Elements of up to 64 bits. exch, adding 0, and bits that and, or and xor leave alone only carry what was there, as a
// load does; `cas` uses it where the bits that are defined do not already differ.
UndefinedUpdate undefined_update(const Update& update, const UpdateBits& values, const UpdateBits& undefined);

struct UpdatedElement {
  unsigned lane = 0;
  ptx::Space space = ptx::Space::global;
  uint64_t address = 0;
};

// The same for an element of memory with this shadow, whose bits before the update `values` has; `undefined.old` is
// filled in from the shadow, which is brought up to date. A use is a fault, and what it made counts as defined: it has
// been said. The undefined bits of what an atom returns.
uint64_t note_undefined_update(Warp& warp, const Update& update, const UpdateBits& values, UpdateBits undefined,
                               uint8_t* shadow, const UpdatedElement& where);

// Undefined bits of an element of memory with this shadow, and of one of a register.
uint64_t undefined_bits(const uint8_t* shadow, unsigned bytes);
void report_undefined_update(Warp& warp, const UpdatedElement& where, unsigned bytes);

}  // namespace ptxkit::emulator
