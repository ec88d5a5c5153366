// Which registers of a kernel are part of an address, and which parameters of the size of one are numbers.
#pragma once

#include <set>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit {

// Where buffers can be.
inline bool is_of_memory(ptx::Space space) { return space == ptx::Space::global || space == ptx::Space::generic; }

// Registers whose value is an address of global memory or is added to one. Moves, sums and selections are followed,
// backwards from accesses; products are offsets, and so is what is added to what cvta has made.
std::set<ptx::RegId> address_parts(const ptx::Function& kernel);

// Parameters of 64 bits that the kernel computes with and makes no address of: counts, pitches. Not one that goes where
// nobody looks: into memory, a call, a texture instruction.
std::set<ptx::VariableId> numbers_of_address_size(const ptx::Module& module, const ptx::Function& kernel,
                                                  const std::set<ptx::RegId>& address_parts);

}  // namespace ptxkit
