// The launches that make LZ blocks of raw ones.
#pragma once

#include <vector>

#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/device/kernel_call.hpp"

namespace ptxkit::codec {

struct LzBlockRegions {
  size_t raw, sizes, matches, resolved, counts, lz, stream_offsets, stream_sizes;
};
// Match finder and demux over `count` blocks at strides of so many bytes, both multiples of 16, in this order; nothing
// goes up or comes down.
std::vector<KernelCall> lz_block_calls(MatchSearch search, const LzBlockRegions& regions, uint32_t count,
                                       size_t raw_stride_bytes, size_t lz_stride_bytes);

}  // namespace ptxkit::codec
