// Elements of halves and of packed types, as cvt writes them.
#pragma once

#include "analyzer/ptx/names.hpp"
#include "runtime/emulator/core/scalar.hpp"

namespace ptxkit::emulator {

// How one element of a format lies in its register.
struct Element {
  const scalar::Format* format = nullptr;  // null: ue8m0, a power of two
  unsigned bits = 8;                       // a byte even for six bits
  uint32_t not_a_number = 0;               // 0 where the format has none
};

// False of a type that is none of these; then `out` stays.
bool element_of(ptx::Type type, Element& out);

}  // namespace ptxkit::emulator
