// Finds the registers of a kernel that are part of an address, and the address-sized parameters that are numbers.
#pragma once

#include <set>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit {

// Address spaces that buffers can be in.
inline bool is_global_or_generic(ptx::Space space) {
  return space == ptx::Space::global || space == ptx::Space::generic;
}

// Registers whose value is an address of global memory or is added to one. Moves, sums and selections are followed
// backwards from accesses. Products are offsets, and so are values added to a result of cvta.
std::set<ptx::RegId> address_parts(const ptx::Function& kernel);

// 64-bit parameters that the kernel computes with but does not use as an address: counts, pitches. Excludes parameters
// whose value is lost track of: stored to memory, passed to a call or a texture instruction.
std::set<ptx::VariableId> address_sized_scalars(const ptx::Module& module, const ptx::Function& kernel,
                                                const std::set<ptx::RegId>& address_parts);

}  // namespace ptxkit
