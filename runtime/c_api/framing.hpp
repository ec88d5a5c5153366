// The framings of LZ4 items in host memory: how the pieces of an item become its bytes, and the other way round.
//
// An item is cut into pieces, each is compressed by a backend, and the results are joined: stitched into one block
// (raw, numcodecs), or one block each (frame, hdf5). Every framing gives a valid result for every item: a piece that
// does not shrink is stored, or becomes a sequence of literals.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/c_api/ptxkit.h"
#include "runtime/c_api/status.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/byte_stream.hpp"

namespace ptxkit::c_api {

using codec::Bytes;
using codec::CompressItem;
using codec::MutableBytes;

// The raw bytes of every piece of an item but the last.
size_t piece_bytes(ptxkit_framing framing);
size_t piece_count(ptxkit_framing framing, size_t item_bytes);

// The most bytes that an item of `item_bytes` takes; nothing if it does not fit a size_t.
std::optional<size_t> framed_bound(ptxkit_framing framing, size_t item_bytes);

// Where the only piece of an item may be coded directly into the item's output: bytes from its begin. Nothing: nowhere.
std::optional<size_t> direct_offset(ptxkit_framing framing);

// Writes the item into `output` from its compressed pieces and returns its bytes; nothing if `output` is too small. A
// piece may have been coded at direct_offset() of `output`.
std::optional<size_t> join(ptxkit_framing framing, Bytes raw, std::span<const CompressItem> pieces,
                           MutableBytes output);

// A part of a compressed item: an LZ4 block, or raw bytes. It becomes `raw_bytes` bytes of the output.
struct Part {
  Bytes stored;
  size_t raw_begin = 0;
  std::optional<size_t> raw_bytes = {};  // nothing: as many as the block gives, up to the item's capacity
  bool is_raw = false;
};
// The parts of an item of raw, numcodecs or hdf5, and its raw size where the framing says it.
struct Parts {
  std::vector<Part> parts;
  std::optional<size_t> raw_bytes = {};
};
Answer<Parts> split(ptxkit_framing framing, Bytes item);

// The size that an LZ4 block decodes to, by its lengths alone; nothing if it is malformed.
std::optional<size_t> block_raw_bytes(Bytes block);

}  // namespace ptxkit::c_api
