// The launches that turn raw blocks into LZ blocks.
#pragma once

#include <vector>

#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/device/kernel_call.hpp"

namespace ptxkit::codec {

struct LzBlockRegions {
  size_t raw, sizes, matches, resolved, counts, lz, stream_offsets, stream_sizes;
};
// Match finder and demultiplexer over `count` blocks. Both strides are multiples of 16. The calls copy nothing up or
// down.
std::vector<KernelCall> lz_block_calls(MatchSearch search, const LzBlockRegions& regions, uint32_t count,
                                       size_t raw_stride_bytes, size_t lz_stride_bytes);

}  // namespace ptxkit::codec
