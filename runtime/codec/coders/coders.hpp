// The transforms of kernels/transform_abi.hpp as a CPU runs them fast: the bytes and the statuses of their references,
// which are the specification, but not their room's content where the status is not ok.
//
// Each call is one thread's; whoever has many items gives each thread some of them.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/entropy/lane_format.hpp"
#include "kernels/entropy/rans_format.hpp"

namespace ptxkit::cpu {

using kernels::TransformOutcome;
using Bytes = std::span<const uint8_t>;
using MutableBytes = std::span<uint8_t>;

TransformOutcome rans_warp_encode(Bytes src, MutableBytes dst, const kernels::RansWarpOptions& options);
TransformOutcome rans_warp_decode(Bytes src, MutableBytes dst);

TransformOutcome rans_chunked_encode(Bytes src, MutableBytes dst, const kernels::RansChunkedOptions& options);
TransformOutcome rans_chunked_decode(Bytes src, MutableBytes dst);

TransformOutcome huffman_encode(Bytes src, MutableBytes dst);
TransformOutcome huffman_decode(Bytes src, MutableBytes dst);

TransformOutcome fse_encode(Bytes src, MutableBytes dst, const kernels::FseOptions& options);
TransformOutcome fse_decode(Bytes src, MutableBytes dst);

// The LZ block that demux_reference makes of the matches that lz77_lazy_reference keeps of lz77_hash_reference's.
TransformOutcome lz77_encode(Bytes src, MutableBytes dst);
// The same of lz77_table_reference's.
TransformOutcome lz77_encode_fast(Bytes src, MutableBytes dst);
TransformOutcome lz77_decode(Bytes src, MutableBytes dst);

}  // namespace ptxkit::cpu
