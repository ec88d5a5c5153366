// Tracks the addresses of variables in a kernel: which operands are addresses into them, and which addresses escape.
#pragma once

#include <map>
#include <vector>

#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/analyses.hpp"

namespace ptxkit::rules {

struct ObjectUse {
  ptx::InstructionId instruction = ptx::kNone;
  uint32_t operand = 0;  // index of the address in the operand pool
};

struct ObjectUses {
  std::vector<ObjectUse> uses;  // in program order
  // The address is stored, passed to a call, or used in arithmetic that the value domain does not follow. Further uses
  // may exist.
  bool is_open = false;
};

// Covers the variables that reachable instructions name. If a call was not inlined, all variables are open.
std::map<ptx::VariableId, ObjectUses> object_uses(Context& context);

}  // namespace ptxkit::rules
