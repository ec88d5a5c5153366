// Finds the buffers of a kernel that hold words used as offsets into memory: indices, permutations, row bounds.
#pragma once

#include <set>
#include <vector>

#include "analyzer/ptx/tree.hpp"
#include "runtime/launch/generated_bytes.hpp"

namespace ptxkit {

// The buffer whose address is at `offset` of a parameter.
struct OffsetWords {
  ptx::VariableId parameter = ptx::kNone;
  uint64_t offset = 0;
  Offsets offsets = Offsets::anywhere;
  uint32_t word_bytes = 0;
};

// Loads are followed through integer arithmetic to addresses, but not through stores to memory. Left out are words of
// one byte, which are small in any case, and buffers whose words the kernel also computes with as floating point
// numbers. `address_parts` are those of the kernel. Each buffer occurs once.
std::vector<OffsetWords> offset_words(const ptx::Module& module, const ptx::Function& kernel,
                                      const std::set<ptx::RegId>& address_parts);

}  // namespace ptxkit
