// Transfer functions of the value domain for operations on plain numbers, without bases and state spaces.
#pragma once

#include <span>

#include "analyzer/flow/domain.hpp"

namespace ptxkit::flow {

// The product in mul and mad, including .wide and .lo; unknown for .hi.
Fact integer_multiply(const ptx::Function& function, const ptx::Instruction& instruction, const Fact& a, const Fact& b,
                      unsigned width);

// Shifts, bit fields, permutes, lop3, min, max, division and others; unknown for operations that are not modelled.
Fact number_operation(const ptx::Function& function, const Operation& operation, std::span<const Fact> inputs);

}  // namespace ptxkit::flow
