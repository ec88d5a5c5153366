// How many warp instructions a kernel takes for a byte: counted by the emulator over the first chunks of an input. They
// are PTX instructions; a GPU's own are somewhat fewer.
#pragma once

#include <string_view>

#include "kernels/images.hpp"
#include "tools/ptx-bench/input.hpp"

namespace ptxkit::bench {

// Of the compressor `image`, a raw byte.
Result<double> compressor_instructions(const kernels::KernelImage& image, const Input& input);

// Of the decompressor `image` on `blocks`, one a chunk, a byte that it makes.
Result<double> decompressor_instructions(const kernels::KernelImage& image, const Input& input,
                                         const std::vector<codec::Bytes>& blocks);

}  // namespace ptxkit::bench
