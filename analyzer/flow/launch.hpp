// A kernel's promises about its launches, and the ranges of special registers that follow.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::flow {

// A buffer or object whose address, handle or tensor map is part of an aggregate parameter.
struct MemberFacts {
  uint64_t offset = 0;      // in the parameter
  uint64_t size_bytes = 0;  // 0: nothing is promised
  std::vector<std::byte> content;
  std::string object;
};

// The value that a run gives to a module variable.
struct VariableFacts {
  std::vector<std::byte> content;  // repeated to the variable's size
  std::string object;
};

// The host's promises about one parameter.
struct ParameterFacts {
  uint32_t align_bytes = 0;           // of a pointer; 0: nothing is promised
  uint64_t size_bytes = 0;            // of the buffer; 0: nothing is promised
  bool is_read_only = false;          // of a pointer or handle: nothing writes its memory while the kernel runs
  std::optional<uint64_t> low, high;  // of a scalar, both inclusive
  // For runs: the content of a buffer's or object's memory, repeated; for other parameters the bytes of the parameter.
  std::vector<std::byte> content;
  // For runs: the texture, surface, sampler or tensor map in the form of runtime/launch/object_spec.hpp; empty: none.
  std::string object;
  std::vector<MemberFacts> members;
};

// The host's promises about every launch of one kernel; rules/engine/launch_file.hpp reads them.
struct LaunchFacts {
  uint32_t block[3] = {0, 0, 0}, grid[3] = {0, 0, 0};  // 0: nothing is promised
  uint64_t dynamic_shared_bytes = 0;
  std::map<std::string, ParameterFacts, std::less<>> parameters;
  std::map<std::string, VariableFacts, std::less<>> variables;
};

struct LaunchShape {
  bool is_exact = false;    // .reqntid or the launch file fixes the block: every launch has `threads`
  bool is_possible = true;  // false where .reqntid asks for a block that no device can launch; is_exact is then false
  uint32_t threads[3] = {0, 0, 0};  // per dimension; valid where is_exact
  uint32_t max_threads = 1024;      // of a block: their number where is_exact, else .maxntid or the hardware limit
  uint32_t grid[3] = {0, 0, 0};     // blocks per dimension; 0: unknown
  uint64_t dynamic_shared_bytes = 0;
  const LaunchFacts* facts = nullptr;

  static LaunchShape of(const ptx::Function& function, const LaunchFacts* facts = nullptr);

  // The promises about a parameter; null where there are none.
  const ParameterFacts* parameter(std::string_view name) const;
  uint64_t size_bytes(std::string_view name) const;

  // Largest %tid in dimension 0..2.
  uint32_t max_tid(unsigned dimension) const;
};

// Inclusive bounds of a special register's component under `shape`.
struct SpecialRange {
  uint64_t low = 0, high = 0;
};
SpecialRange range_of(ptx::SpecialRegister special, uint8_t component, const LaunchShape& shape);

}  // namespace ptxkit::flow
