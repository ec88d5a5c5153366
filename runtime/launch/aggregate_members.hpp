// The members that a kernel loads from parameters that are aggregates.
#pragma once

#include <set>
#include <vector>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit {

struct AggregateMember {
  ptx::VariableId parameter = ptx::kNone;
  uint64_t offset = 0;
  uint32_t size_bytes = 0;
  ptx::Type type = ptx::Type::none;  // of the load
  bool is_address = false;           // the loaded value, or a sum with it, is the address of an access to global memory
};

// In the order of offsets, without duplicates. `address_parts` are those of the kernel.
std::vector<AggregateMember> aggregate_members(const ptx::Module& module, const ptx::Function& kernel,
                                               const std::set<ptx::RegId>& address_parts);

}  // namespace ptxkit
