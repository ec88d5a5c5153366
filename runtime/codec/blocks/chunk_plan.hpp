// Items of any size as chunks that the kernels take, and the chunks' encodings as the items' results.
//
// The reproducible encoder's bytes are a function of the raw bytes alone: an item is cut every 64 KiB, a chunk of at
// most a page goes to the page kernel, a larger one to the chunk kernel (of the high-ratio encoder every one to its own
// kernel), and the encodings are stitched. Every backend
// runs this same plan, so the backend cannot matter.
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

// Whether the page kernel takes a chunk of so many bytes.
bool fits_page_kernel(size_t raw_bytes);

class ChunkPlan {
 public:
  // Items must have output.size() >= raw.size() and no history.
  explicit ChunkPlan(std::span<CompressItem> items);

  std::span<Chunk> chunks() { return chunks_; }
  size_t item_count() const { return items_.size(); }
  // Sets the results of item `index`; its chunks have theirs. Different items may be finished at the same time.
  void finish(size_t index);

 private:
  std::span<CompressItem> items_;
  std::vector<size_t> first_chunk_;  // of each item, and one past the last
  std::vector<Chunk> chunks_;
  std::unique_ptr<uint8_t[]> scratch_;  // outputs of items with several chunks
};

}  // namespace ptxkit::codec
