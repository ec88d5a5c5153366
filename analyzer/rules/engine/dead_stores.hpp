// Finds stores that no load can see, for F073.
#pragma once

#include <vector>

#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/analyses.hpp"

namespace ptxkit::rules {

struct DeadStore {
  ptx::InstructionId store = ptx::kNone;
  ptx::InstructionId overwritten_by = ptx::kNone;  // kNone: nothing in the kernel reads these bytes of `object`
  ptx::VariableId object = ptx::kNone;
};

// Returns dead stores in no particular order. A store is dead if the same thread overwrites all its bytes before any
// other read, or if it writes to a shared or local variable whose address stays in the kernel and whose bytes no load
// reads.
std::vector<DeadStore> dead_stores(Context& context);

}  // namespace ptxkit::rules
