// The LZ4 kernels on device-resident data, timed with device events and checked byte by byte.
#pragma once

#include "runtime/driver/context.hpp"
#include "tools/ptx-bench/input.hpp"

namespace ptxkit::bench {

// What the compressor made, back on the host: a block for each chunk that shrank.
struct GpuEncoded {
  Timing seconds;
  uint64_t stored_bytes = 0;
  std::vector<std::vector<uint8_t>> blocks;  // empty where the flag is not `compressed`
};

// By one of the compressors; chunks are within its limit. Outputs are poisoned before the measured runs and checked
// after them: each block is decoded by liblz4, each flag agrees with the raw bytes.
Result<GpuEncoded> measure_compression(const driver::ContextPointer& context, const Input& input,
                                       std::string_view kernel_name, codec::Executor& executor,
                                       const Repetition& repetition);

// Decodes `blocks` (one a chunk, none empty); the output is poisoned before and compared with the input after.
Result<Timing> measure_decompression(const driver::ContextPointer& context, const Input& input,
                                     const std::vector<codec::Bytes>& blocks, const Repetition& repetition);

// Seconds to copy `size_bytes` within the device's memory.
Result<Timing> measure_copy(const driver::ContextPointer& context, size_t size_bytes, const Repetition& repetition);

}  // namespace ptxkit::bench
