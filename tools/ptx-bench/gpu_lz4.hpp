// Measures the LZ4 kernels on data in device memory, with device events, and checks the results byte by byte.
#pragma once

#include "runtime/driver/context.hpp"
#include "tools/ptx-bench/input.hpp"

namespace ptxkit::bench {

// The results of a compressor, on the host.
struct GpuEncoded {
  Timing seconds;
  uint64_t stored_bytes = 0;
  std::vector<std::vector<uint8_t>> blocks;  // for each chunk; empty if its flag is not `compressed`
};

// Measures the compressor `kernel_name`; chunks must be within its limit. Outputs are poisoned before the measured runs
// and checked after them: liblz4 must decode each block to the raw bytes, and each flag must agree with them.
Result<GpuEncoded> measure_compression(const driver::ContextPointer& context, const Input& input,
                                       std::string_view kernel_name, codec::Executor& executor,
                                       const Repetition& repetition);

// Measures the decompressor on `blocks`, one for each chunk, none empty. The output is poisoned before and compared
// with the input after the runs.
Result<Timing> measure_decompression(const driver::ContextPointer& context, const Input& input,
                                     const std::vector<codec::Bytes>& blocks, const Repetition& repetition);

// Measures a copy of `size_bytes` within device memory.
Result<Timing> measure_copy(const driver::ContextPointer& context, size_t size_bytes, const Repetition& repetition);

}  // namespace ptxkit::bench
