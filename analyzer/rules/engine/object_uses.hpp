// Where the addresses of variables go in a kernel: which operands are addresses into them, and whose address leaves
// what is followed.
#pragma once

#include <map>
#include <vector>

#include "analyzer/rules/engine/analyses.hpp"

namespace ptxkit::rules {

struct ObjectUse {
  ptx::InstructionId instruction = ptx::kNone;
  uint32_t operand = 0;  // an address, in the operand pool
};

struct ObjectUses {
  std::vector<ObjectUse> uses;  // in program order
  // The address is stored, passed to a call, or computed with in a way that the value domain does not follow: there may
  // be further uses.
  bool is_open = false;
};

// Of the variables that reachable instructions name. Where a call is not followed, all are open.
std::map<ptx::VariableId, ObjectUses> object_uses(Context& context);

}  // namespace ptxkit::rules
