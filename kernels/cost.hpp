// The `@pz_cost` block: the memory that a kernel needs for an item and its number of threads, as functions of the
// sizes.
//
// The DSL writes the block into the PTX as a comment. The runtime sizes its buffers from the PTX that it is about to
// load, so that the two cannot disagree. The form, for one kernel:
//   // @pz_cost {
//   //   threads_per_element: 0.03125,
//   //   passes: 1,
//   //   buffers: input=N, output=N, lengths=N/1024*4, table=131072,
//   //   local_mem: 8192,
//   //   note: "one warp a page"
//   // }
// `lengths[]` is what lies behind the addresses that are in the array `lengths`, of all items together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.hpp"

namespace ptxkit::kernels {

// The size of a launch. Where a buffer's expression divides N or M, all items must have the same size.
struct LaunchSize {
  uint64_t input_bytes = 0;  // N of all items: what an encoder reads and a decoder writes
  uint64_t item_count = 1;
  uint64_t coded_bytes = 0;  // M of all items: what a decoder reads, for kernels whose coded size depends on the data
};

struct CostTerm {
  char variable = 0;  // 'N', 'M', or 0: `times` alone
  uint64_t times = 0, divisor = 1;
};

// The bytes that a buffer needs for an item. The grammar is a list of terms joined by `+`, each of
//   integer | V | V*integer | V/integer | V/integer*integer        V: N or M; no division by zero; V/k rounds up
// Other text is an error.
struct CostExpression {
  std::vector<CostTerm> terms;

  std::string text() const;
  // Bytes for all items of a launch. Fails if the value does not fit 64 bits, or if a division meets items of unequal
  // size.
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
  uint64_t local_mem_bytes = 0;  // shared memory of a CTA (OpenCL: local memory of a workgroup)
  std::string note;

  // The sum of all buffers. Fails as evaluate() does, or if the sum does not fit 64 bits.
  Result<uint64_t> memory_bytes(const LaunchSize& launch) const;
  // nullptr if no buffer has that name.
  const CostBuffer* find_buffer(std::string_view name) const;
  // Threads of all passes: threads_per_element * input_bytes, rounded down, times passes. Fails if it does not fit 64
  // bits.
  Result<uint64_t> thread_count(uint64_t input_bytes) const;
};

// Reads the block of a PTX text with one kernel. No block, two blocks, an unknown key, a missing key and an expression
// that does not parse are errors that name the line.
Result<KernelCost> parse_kernel_cost(std::string_view ptx);

}  // namespace ptxkit::kernels
