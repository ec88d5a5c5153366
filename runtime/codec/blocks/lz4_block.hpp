// LZ4 blocks assembled on the host: a block of one repeated byte, and one large block from the encodings of its chunks.
//
// The kernels compress at most 64 KiB at a time, but a frame with larger blocks needs one LZ4 block. Encodings of
// adjacent chunks nearly form one: only the last sequence of a chunk has no match, which is legal at the end of a block
// alone. Stitching joins its literals to those of the first sequence of the next chunk: it rewrites one token and one
// length and copies the rest. The end-of-block rules (the last 5 bytes are literals, no match starts in the last 12)
// hold for each chunk, hence for the last one and for the stitched block. Source: lz4_Block_format.md of the LZ4
// project.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "runtime/codec/backend.hpp"

namespace ptxkit::codec {

// The encoding of one chunk. `block` is used only if the flag is `compressed`.
struct ChunkEncoding {
  uint32_t raw_bytes = 0;
  ChunkFlag flag = ChunkFlag::incompressible;
  Bytes block;
};

// Writes the LZ4 block of `raw`, whose consecutive chunks are encoded as `chunks` (their raw_bytes add up to
// raw.size()). Returns its length, or nothing if it would not be shorter than raw.size() or does not fit `output`. The
// chunks' blocks must be well formed: they come from our encoders.
std::optional<uint32_t> stitch(Bytes raw, std::span<const ChunkEncoding> chunks, MutableBytes output);

// Writes an LZ4 block that is one sequence of literals: valid for any bytes. Nothing if it does not fit `output`.
std::optional<size_t> encode_literals(Bytes raw, MutableBytes output);
// Its bytes for `raw_bytes` bytes.
constexpr size_t literal_block_bytes(size_t raw_bytes) {
  return raw_bytes + (raw_bytes < 15 ? 1 : 2 + (raw_bytes - 15) / 255);
}

// Writes an LZ4 block of `raw`, whose bytes are all equal: at most raw.size() / 255 + 12 bytes. Nothing if it would not
// be shorter than `raw` or does not fit `output`.
std::optional<uint32_t> encode_run(Bytes raw, MutableBytes output);

}  // namespace ptxkit::codec
