#include "runtime/codec/blocks/chunk_plan.hpp"

#include <algorithm>

#include "kernels/abi.hpp"
#include "runtime/codec/blocks/lz4_block.hpp"
#include "support/check.hpp"

namespace ptxkit::codec {
namespace {
constexpr size_t kChunkBytes = kernels::kMaxChunkBytes;
}

bool fits_page_kernel(size_t raw_bytes) { return raw_bytes <= kernels::kMaxPageBytes; }

ChunkPlan::ChunkPlan(std::span<CompressItem> items) : items_(items) {
  size_t chunk_count = 0, scratch_bytes = 0;
  for (const CompressItem& item : items) {
    PTXKIT_CHECK(item.output.size() >= item.raw.size(), "the output of an item is at least as large as the item");
    PTXKIT_CHECK(item.history.empty(), "the reproducible encoder has no linked blocks");
    chunk_count += std::max<size_t>(1, (item.raw.size() + kChunkBytes - 1) / kChunkBytes);
    if (item.raw.size() > kChunkBytes) scratch_bytes += item.raw.size();
  }
  chunks_.reserve(chunk_count);
  first_chunk_.reserve(items.size() + 1);
  scratch_ = std::make_unique_for_overwrite<uint8_t[]>(scratch_bytes);
  uint8_t* scratch = scratch_.get();
  for (CompressItem& item : items) {
    first_chunk_.push_back(chunks_.size());
    const bool single = item.raw.size() <= kChunkBytes;
    size_t begin = 0;
    do {
      const size_t size = std::min(kChunkBytes, item.raw.size() - begin);
      chunks_.push_back({.raw = item.raw.subspan(begin, size),
                         .output = single ? item.output.first(size) : MutableBytes(scratch + begin, size)});
      begin += size;
    } while (begin < item.raw.size());
    if (!single) scratch += item.raw.size();
  }
  first_chunk_.push_back(chunks_.size());
}

void ChunkPlan::finish(size_t index) {
  CompressItem& item = items_[index];
  const auto chunks = std::span(chunks_).subspan(first_chunk_[index], first_chunk_[index + 1] - first_chunk_[index]);
  item.status = ItemStatus::ok;
  if (chunks.size() == 1) {
    item.flag = chunks[0].flag;
    item.compressed_bytes = chunks[0].compressed_bytes;
    return;
  }
  if (std::all_of(chunks.begin(), chunks.end(), [](const Chunk& chunk) { return chunk.flag == ChunkFlag::zero; })) {
    item.flag = ChunkFlag::zero;
    item.compressed_bytes = 0;
    return;
  }
  std::vector<ChunkEncoding> encodings;
  encodings.reserve(chunks.size());
  for (const Chunk& chunk : chunks) {
    encodings.push_back({.raw_bytes = static_cast<uint32_t>(chunk.raw.size()),
                         .flag = chunk.flag,
                         .block = Bytes(chunk.output.first(chunk.compressed_bytes))});
  }
  const auto length = stitch(item.raw, encodings, item.output);
  item.flag = length ? ChunkFlag::compressed : ChunkFlag::incompressible;
  item.compressed_bytes = length.value_or(static_cast<uint32_t>(item.raw.size()));
}

}  // namespace ptxkit::codec
