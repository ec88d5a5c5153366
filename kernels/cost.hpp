// The `@pz_cost` block: what a kernel allocates for an item and how many threads it takes, as a function of the sizes.
//
// The DSL writes the block into the PTX as a comment; the runtime sizes its buffers by what it reads from the PTX that
// it is about to load, so that the two cannot disagree. Form, one kernel:
//
//   // @pz_cost {
//   //   threads_per_element: 0.03125,
//   //   passes: 1,
//   //   buffers: input=N, output=N, lengths=N/1024*4, table=131072,
//   //   local_mem: 0,
//   //   note: "one warp a page"
//   // }
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.hpp"

namespace ptxkit::kernels {

// What a launch works on. Its items are as large as each other where a buffer divides N or M.
struct LaunchSize {
  uint64_t input_bytes = 0;  // N of all items: what an encoder reads and a decoder writes
  uint64_t item_count = 1;
  uint64_t coded_bytes = 0;  // M of all items: what a decoder reads, where the data decide how long that is
};

struct CostTerm {
  char variable = 0;  // 'N', 'M', or 0: `times` alone
  uint64_t times = 0, divisor = 1;
};

// What a buffer has for an item, in bytes. Grammar, and nothing else is accepted: terms joined by `+`, each of
//   integer | V | V*integer | V/integer | V/integer*integer        V: N or M; no division by zero; V/k rounds up
struct CostExpression {
  std::vector<CostTerm> terms;

  std::string text() const;
  // Bytes for all items of a launch. Fails when the value does not fit 64 bits, or a division finds items that differ.
  Result<uint64_t> evaluate(const LaunchSize& launch) const;
};

Result<CostExpression> parse_cost_expression(std::string_view text);

struct CostBuffer {
  std::string name;
  CostExpression bytes;
};

struct KernelCost {
  double threads_per_element = 0;  // > 0; an element is a byte of input
  uint32_t passes = 1;
  std::vector<CostBuffer> buffers;
  uint64_t local_mem_bytes = 0;  // per thread
  std::string note;

  // Sum of all buffers.
  Result<uint64_t> memory_bytes(const LaunchSize& launch) const;
  // Null where there is none of that name.
  const CostBuffer* find_buffer(std::string_view name) const;
  // ceil(threads_per_element * input_bytes). Fails when that does not fit 64 bits.
  Result<uint64_t> thread_count(uint64_t input_bytes) const;
};

// The block of a PTX text that holds one kernel. No block, two blocks, an unknown key, a missing key or an expression
// that does not parse is an error with the line.
Result<KernelCost> parse_kernel_cost(std::string_view ptx);

}  // namespace ptxkit::kernels
