// Fast CPU versions of the transforms in kernels/transform_abi.hpp. Bytes and statuses equal those of the reference
// implementations, which are the specification; if the status is not ok the content of `dst` is unspecified.
//
// A call uses one thread. To code many items in parallel, call from several threads.
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

// Writes the LZ block that the references lz77_hash, lz77_lazy and demux make together.
TransformOutcome lz77_encode(Bytes src, MutableBytes dst);
// The same with lz77_table as match finder.
TransformOutcome lz77_encode_fast(Bytes src, MutableBytes dst);
TransformOutcome lz77_decode(Bytes src, MutableBytes dst);

}  // namespace ptxkit::cpu
