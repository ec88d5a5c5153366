// LZ4 blocks put together on the host: a block of zeros, and one large block out of the encodings of its chunks.
//
// The kernels compress at most 64 KiB at a time. A frame with larger blocks wants one LZ4 block, and the chunk
// encodings of adjacent chunks are almost that: only the last sequence of a chunk has no match, which is legal at the
// end of a block alone. Stitching joins its literals to those of the next chunk's first sequence: one token and one
// length are written anew, everything else is copied. The end-of-block rules (the last 5 bytes are literals, no match
// starts in the last 12) hold for each chunk by itself, so they hold for the last one and for what precedes it. Source:
// lz4_Block_format.md of the LZ4 project.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "runtime/codec/backend.hpp"

namespace ptxkit::codec {

// The encoding of one chunk: `block` counts only with the flag `compressed`.
struct ChunkEncoding {
  uint32_t raw_bytes = 0;
  ChunkFlag flag = ChunkFlag::incompressible;
  Bytes block;
};

// Writes the block for `raw`, whose consecutive chunks are encoded as `chunks` (raw_bytes add up to raw.size()).
// Returns its length, or nothing when it would not be shorter than raw.size() or than output.size(). A chunk's block
// must be well formed: it comes from our encoders.
std::optional<uint32_t> stitch(Bytes raw, std::span<const ChunkEncoding> chunks, MutableBytes output);

// Writes an LZ4 block of `raw_bytes` zeros; nothing when that would not be shorter. At most raw_bytes / 255 + 12 bytes.
std::optional<uint32_t> encode_zeros(uint32_t raw_bytes, MutableBytes output);

}  // namespace ptxkit::codec
