// Register pressure from liveness: how many 32-bit words of values are alive at once. The assembler reorders and
// rematerialises, so this is an estimate of what it will need, not a bound.
#pragma once

#include "analyzer/flow/ssa.hpp"

namespace ptxkit::flow {

struct Pressure {
  uint32_t words = 0;         // greatest number alive; predicates are free
  ptx::InstructionId at = 0;  // where
};

Pressure pressure(const Ssa& ssa);

}  // namespace ptxkit::flow
