// Stores that no load can see: for F073.
#pragma once

#include <string>
#include <vector>

#include "analyzer/rules/engine/analyses.hpp"

namespace ptxkit::rules {

struct DeadStore {
  ptx::InstructionId store = ptx::kNone;
  ptx::InstructionId overwritten_by = ptx::kNone;  // kNone: nothing in the kernel reads these bytes of `object`
  ptx::VariableId object = ptx::kNone;
};

// In no order. A store is dead where the same thread writes all its bytes again before anybody may have looked, or
// where it goes to a shared or local variable whose address stays in the kernel and of which nothing reads these bytes.
std::vector<DeadStore> dead_stores(Context& context);

}  // namespace ptxkit::rules
