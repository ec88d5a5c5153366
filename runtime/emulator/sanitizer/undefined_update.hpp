// The effect of an update on undefined bits, and whether it uses undefined bits.
#pragma once

#include <cstdint>

#include "analyzer/ptx/names.hpp"
#include "runtime/emulator/core/update.hpp"

namespace ptxkit::emulator {

struct Warp;

// An element of memory before the update, and its operands; or the undefined bits of each.
struct UpdateBits {
  uint64_t old = 0, b = 0, c = 0;
};

struct UndefinedUpdate {
  uint64_t bits = 0;     // of the element after the update
  bool decides = false;  // undefined bits take part in the result and no later mask can remove them
};

// For elements of up to 64 bits. exch, an addition of 0, and bits that and, or and xor leave unchanged only carry
// undefined bits, as a load does. `cas` uses them unless the defined bits already differ.
UndefinedUpdate undefined_update(const Update& update, const UpdateBits& values, const UpdateBits& undefined);

struct UpdatedElement {
  unsigned lane = 0;
  ptx::Space space = ptx::Space::global;
  uint64_t address = 0;
};

// The same for an element of memory with this shadow; `values` are the bits before the update. `undefined.old` is
// filled in from the shadow, which is then updated. A use is reported as a fault and its result counts as defined, so
// that it is reported once. Returns the undefined bits of the result of an atom.
uint64_t note_undefined_update(Warp& warp, const Update& update, const UpdateBits& values, UpdateBits undefined,
                               uint8_t* shadow, const UpdatedElement& where);

// The undefined bits of an element of memory with this shadow.
uint64_t undefined_bits(const uint8_t* shadow, unsigned bytes);
// Reports the use of an undefined element.
void report_undefined_update(Warp& warp, const UpdatedElement& where, unsigned bytes);

}  // namespace ptxkit::emulator
