// Cuts items of any size into chunks for the kernels, and joins the encoded chunks into results for the items.
//
// The output of the reproducible encoder depends only on the raw bytes: an item is cut every 64 KiB, a chunk of at most
// a page goes to the page kernel and a larger one to the chunk kernel (the high-ratio encoder uses its own kernel for
// all), and the encodings are stitched together. Every backend follows the same plan, so all write the same bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/codec/backend.hpp"

namespace ptxkit::codec {

struct Chunk {
  Bytes raw;
  MutableBytes output;  // raw.size() bytes
  // Results, set by the backend:
  uint32_t compressed_bytes = 0;
  ChunkFlag flag = ChunkFlag::incompressible;
};

// Whether a chunk of `raw_bytes` goes to the page kernel.
bool fits_page_kernel(size_t raw_bytes);

class ChunkPlan {
 public:
  // Items must have output.size() >= raw.size() and no history.
  explicit ChunkPlan(std::span<CompressItem> items);

  std::span<Chunk> chunks() { return chunks_; }
  size_t item_count() const { return items_.size(); }
  // Sets the results of item `index`, whose chunks must have theirs. Calls for different items may run concurrently.
  void finish(size_t index);

 private:
  std::span<CompressItem> items_;
  std::vector<size_t> first_chunk_;  // of each item, and one past the last
  std::vector<Chunk> chunks_;
  std::unique_ptr<uint8_t[]> scratch_;  // outputs of items that have several chunks
};

}  // namespace ptxkit::codec
