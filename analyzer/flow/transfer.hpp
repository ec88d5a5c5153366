// Transfer functions of the value domain for operations on plain numbers: no bases, no state spaces.
#pragma once

#include <span>

#include "analyzer/flow/domain.hpp"

namespace ptxkit::flow {

// The product of mul, mad and their .wide and .lo forms; unknown for .hi.
Fact integer_multiply(const ptx::Function& function, const ptx::Instruction& instruction, const Fact& a, const Fact& b,
                      unsigned width);

// Shifts, bit fields, permutes, lop3, min, max, division and the rest; unknown for what is not modelled.
Fact number_operation(const ptx::Function& function, const Operation& operation, std::span<const Fact> inputs);

}  // namespace ptxkit::flow
