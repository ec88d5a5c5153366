// What a function is made of: instructions by kind, registers, memory, loops, barriers, accesses by space and width.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::inspect {

struct RegisterCount {
  ptx::Type type = ptx::Type::none;
  uint64_t declared_count = 0;
  uint32_t used_count = 0;  // named by some instruction
};

// Accesses of one kind to one space that move `bytes` per thread each; 0 where other operands say how many (bulk
// copies, tensor maps) or a warp shares them.
struct AccessCount {
  ptx::AccessKind kind = ptx::AccessKind::load;
  ptx::Space space = ptx::Space::generic;
  uint32_t bytes = 0;
  uint32_t count = 0;
};

struct FunctionStatistics {
  std::string_view name;
  bool is_entry = false;
  uint32_t instruction_count = 0;
  uint32_t block_count = 0;
  uint32_t loop_count = 0;
  uint32_t deepest_loop = 0;  // 1 for a loop that is in no other
  bool is_irreducible = false;
  uint32_t branch_count = 0, call_count = 0;
  uint32_t cta_barrier_count = 0, warp_barrier_count = 0;
  uint64_t parameter_bytes = 0;  // with the gaps that alignment makes
  uint64_t shared_bytes = 0;     // declared in the function, or in the module and named by the function
  bool uses_dynamic_shared = false;
  uint64_t local_bytes = 0;
  uint64_t constant_bytes = 0;           // of the module's .const that the function names
  std::vector<RegisterCount> registers;  // by type, in the order of types.def
  std::map<std::string, uint32_t> mix;   // "ld.global" -> 3: opcode and modifiers without types
  std::vector<AccessCount> accesses;     // by space, kind, bytes
};

// Of a function with a body. Calls are not followed.
FunctionStatistics statistics_of(const ptx::Module& module, const ptx::Function& function);

// "ld.global" of "ld.global.v2.u32".
std::string kind_of(std::string_view spelling);

// All functions with a body, in program order.
std::vector<FunctionStatistics> statistics_of(const ptx::Module& module);

std::string statistics_text(const ptx::Module& module);
// An object with `path` and `functions`, without a final newline; see docs/ptx-debug.md.
std::string statistics_json(const ptx::Module& module);

}  // namespace ptxkit::inspect
