// Counts the warp instructions of a kernel for each byte, on the emulator and the first chunks of an input. They are
// PTX instructions; a GPU executes somewhat fewer machine instructions.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernels/images.hpp"
#include "tools/ptx-bench/input.hpp"

namespace ptxkit::bench {

// For the compressor `image`, per raw byte.
Result<double> compressor_instructions(const kernels::KernelImage& image, const Input& input);

// For the decompressor `image` on `blocks` (one for each chunk), per decoded byte.
Result<double> decompressor_instructions(const kernels::KernelImage& image, const Input& input,
                                         const std::vector<codec::Bytes>& blocks);

// For the transform `image`, whose statuses are all to be ok: warp instructions in all. `options` are its own.
struct TransformItem {
  codec::Bytes from;
  size_t room_bytes = 0;  // of the result
};
Result<uint64_t> transform_instructions(const kernels::KernelImage& image, std::span<const TransformItem> items,
                                        const std::vector<uint32_t>& options = {});

}  // namespace ptxkit::bench
