// Elements of half precision and of packed types, as cvt writes them.
#pragma once

#include "analyzer/ptx/names.hpp"
#include "runtime/emulator/core/scalar.hpp"

namespace ptxkit::emulator {

// The layout of one element of a format in its register.
struct Element {
  const scalar::Format* format = nullptr;  // null: ue8m0, a power of two
  unsigned bits = 8;                       // a byte also for six bits
  uint32_t not_a_number = 0;               // 0 if the format has none
};

// Returns false for a type that is none of these; `out` is then unchanged.
bool element_of(ptx::Type type, Element& out);

}  // namespace ptxkit::emulator
