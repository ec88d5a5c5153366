// The `@pz_cost` block: what a kernel allocates and how many threads it takes, as a function of the input size.
//
// The DSL writes the block into the PTX as a comment; the scheduler reads it from the PTX it is about to load, so that
// the two cannot disagree. Form, one kernel:
//
//   // @pz_cost {
//   //   threads_per_element: 0.03125,
//   //   passes: 1,
//   //   buffers: input=N, output=N, lengths=N/1024, table=131072,
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

// A byte count as a function of the input's N bytes. Grammar, and nothing else is accepted:
//   integer | N | N*integer | N*integer+integer | N/integer        (no division by zero; N/k rounds up)
struct CostExpression {
  uint64_t factor = 0;    // N * factor
  uint64_t divisor = 0;   // 0: no division; otherwise ceil(N / divisor), and the other two are 0
  uint64_t constant = 0;  // + constant

  // Bytes at `input_bytes`. Fails when the value does not fit 64 bits.
  Result<uint64_t> evaluate(uint64_t input_bytes) const;
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
  Result<uint64_t> memory_bytes(uint64_t input_bytes) const;
  // ceil(threads_per_element * input_bytes). Fails when that does not fit 64 bits.
  Result<uint64_t> thread_count(uint64_t input_bytes) const;
};

// The block of a PTX text that holds one kernel. No block, two blocks, an unknown key, a missing key or an expression
// that does not parse is an error with the line.
Result<KernelCost> parse_kernel_cost(std::string_view ptx);

}  // namespace ptxkit::kernels
