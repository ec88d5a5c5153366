// Counts the warp instructions of a kernel for each byte, on the emulator and the first chunks of an input. They are
// PTX instructions; a GPU executes somewhat fewer machine instructions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/images.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "support/result.hpp"
#include "tools/ptx-bench/input.hpp"

namespace ptxkit::bench {

// The number of chunks of an input that are run.
uint32_t sample_count(const Input& input);

struct TransformItem {
  codec::Bytes from;
  size_t room_bytes = 0;  // of the result
};
// For a kernel with the parameters of kernels/transform_abi.hpp, followed by `options`: warp instructions of one
// launch. An error if an item's status is not ok.
Result<uint64_t> transform_instructions(const kernels::KernelImage& image, uint32_t items_per_block,
                                        std::span<const TransformItem> items, std::span<const uint32_t> options);

// For the compressor `image`, per raw byte.
Result<double> compressor_instructions(const kernels::KernelImage& image, const Input& input);

// For the decompressor `image` on `blocks` (one for each chunk), per decoded byte.
Result<double> decompressor_instructions(const kernels::KernelImage& image, const Input& input,
                                         const std::vector<codec::Bytes>& blocks);

}  // namespace ptxkit::bench
