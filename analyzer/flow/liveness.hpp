// Register pressure from liveness: the largest number of live 32-bit words. The assembler reorders and rematerialises,
// so this estimates its needs and does not bound them.
#pragma once

#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::flow {

struct RegisterPressure {
  uint32_t words = 0;         // maximum over the function; predicates do not count
  ptx::InstructionId at = 0;  // where the maximum occurs
};

RegisterPressure pressure(const Ssa& ssa);

}  // namespace ptxkit::flow
