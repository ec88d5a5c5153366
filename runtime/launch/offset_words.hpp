// Which buffers of a kernel hold words that become offsets into memory: indices, permutations, bounds of rows.
#pragma once

#include <set>
#include <vector>

#include "analyzer/ptx/tree.hpp"
#include "runtime/launch/generated_bytes.hpp"

namespace ptxkit {

// The buffer whose address lies at `offset` in a parameter.
struct OffsetWords {
  ptx::VariableId parameter = ptx::kNone;
  uint64_t offset = 0;
  Offsets offsets = Offsets::anywhere;
  uint32_t word_bytes = 0;
};

// Loads are followed through integer arithmetic to addresses; what is stored to memory on the way is not. Left out are
// words of one byte, which stay near by themselves, and buffers whose words the kernel computes with as floating-point
// numbers too. `address_parts` are those of the kernel. Each buffer once.
std::vector<OffsetWords> offset_words(const ptx::Module& module, const ptx::Function& kernel,
                                      const std::set<ptx::RegId>& address_parts);

}  // namespace ptxkit
