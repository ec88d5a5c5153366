// What a kernel says about the block it is launched with, and what follows for the special registers.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::flow {

// A buffer or an object whose address, handle or map lies in a parameter that is an aggregate.
struct MemberFacts {
  uint64_t offset = 0;      // of it in the parameter
  uint64_t size_bytes = 0;  // 0: nothing is promised
  std::vector<std::byte> content;
  std::string object;
};

// What a run gives a variable of the module.
struct VariableFacts {
  std::vector<std::byte> content;  // again and again
  std::string object;
};

// What the host promises of one parameter.
struct ParameterFacts {
  uint32_t align_bytes = 0;           // of a pointer; 0: nothing is promised
  uint64_t size_bytes = 0;            // of the buffer; 0: nothing is promised
  bool is_read_only = false;          // of a pointer or handle: nothing writes its memory while the kernel runs
  std::optional<uint64_t> low, high;  // of a scalar, inclusive
  // For runs: what a buffer or an object's memory holds, again and again; of a parameter that is neither its bytes.
  std::vector<std::byte> content;
  // For runs: the texture, surface, sampler or tensor map, as runtime/launch/object_spec.hpp spells it. Empty: none.
  std::string object;
  std::vector<MemberFacts> members;
};

// What the host promises of every launch of one kernel; rules/launch_file.hpp reads it.
struct LaunchFacts {
  uint32_t block[3] = {0, 0, 0}, grid[3] = {0, 0, 0};  // 0: nothing is promised
  uint64_t dynamic_shared_bytes = 0;
  std::map<std::string, ParameterFacts, std::less<>> parameters;
  std::map<std::string, VariableFacts, std::less<>> variables;
};

struct LaunchShape {
  bool is_exact = false;            // .reqntid or the launch file: every launch has `threads`
  bool is_possible = true;          // false where .reqntid asks for a block that no device starts; not exact then
  uint32_t threads[3] = {0, 0, 0};  // per dimension; valid where is_exact
  uint32_t max_threads = 1024;      // of a block; .maxntid or the hardware's limit
  uint32_t grid[3] = {0, 0, 0};     // blocks per dimension; 0 where not known
  uint64_t dynamic_shared_bytes = 0;
  const LaunchFacts* facts = nullptr;

  static LaunchShape of(const ptx::Function& function, const LaunchFacts* facts = nullptr);

  // What is promised of a parameter; null where nothing is.
  const ParameterFacts* parameter(std::string_view name) const;
  uint64_t size_bytes(std::string_view name) const;

  uint32_t block_threads() const { return max_threads; }
  // Largest %tid in dimension 0..2.
  uint32_t max_tid(unsigned dimension) const;
};

// Inclusive bounds of a special register's component under `shape`.
struct SpecialRange {
  uint64_t low = 0, high = 0;
};
SpecialRange range_of(ptx::SpecialRegister special, uint8_t component, const LaunchShape& shape);

}  // namespace ptxkit::flow
