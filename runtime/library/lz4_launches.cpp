// LZ4 in device memory.
#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/abi.hpp"
#include "runtime/library/coding_launches.hpp"

namespace ptxkit::library {
namespace {

using kernels::BatchFraming;

// The parts of temporary memory: a record, then a slot, for each chunk of each item, if an item may have several
// chunks or has blocks.
struct Temp {
  uint64_t chunks_per_item = 1;
  size_t record_bytes = 0, slot_bytes = 0;
};

Result<Temp> temp_of(uint64_t max_input_bytes, uint64_t item_count, Framing framing) {
  Temp temp;
  if (max_input_bytes <= kernels::kMaxChunkBytes && !has_blocks(framing)) return temp;
  temp.chunks_per_item =
      std::max<uint64_t>((max_input_bytes + kernels::kMaxChunkBytes - 1) / kernels::kMaxChunkBytes, 1);
  if (item_count > kMostItems / temp.chunks_per_item) {
    return fail(fmt::format("expected at most {} chunks of {} bytes, found {} items of {} chunks", kMostItems,
                            kernels::kMaxChunkBytes, item_count, temp.chunks_per_item),
                {}, "cut the batch in several");
  }
  temp.record_bytes = sizeof(kernels::Lz4BatchRecord) * temp.chunks_per_item * item_count;
  const uint64_t slot_bytes =
      std::min<uint64_t>(kernels::lz4_batch_slot_bytes(max_input_bytes), kernels::kMaxChunkBytes);
  temp.slot_bytes = slot_bytes * temp.chunks_per_item * item_count;
  return temp;
}

// Of temporary memory of a decompression: what is known of each item, then of each of its blocks, then their raw sizes.
constexpr size_t kListedBlockBytes = sizeof(kernels::Lz4BatchBlock) + sizeof(uint32_t);

size_t block_lists_bytes(uint64_t max_raw_bytes, uint64_t item_count) {
  const uint64_t blocks = max_raw_bytes / kernels::kMaxChunkBytes + (max_raw_bytes % kernels::kMaxChunkBytes != 0);
  return item_count * (sizeof(kernels::Lz4BatchLayout) + blocks * kListedBlockBytes);
}

Result<std::vector<BatchLaunch>> launches_by_block(const BatchDecompression& batch) {
  const uint64_t count = batch.item_count;
  const size_t layouts_bytes = count * sizeof(kernels::Lz4BatchLayout);
  if (auto is_there = check_temp(batch.temp, batch.temp_bytes, layouts_bytes); !is_there)
    return tl::unexpected(is_there.error());
  const uint64_t blocks_per_item =
      std::min((batch.temp_bytes - layouts_bytes) / count / kListedBlockBytes, kMostItems / count);
  const uint64_t blocks = batch.temp + layouts_bytes;
  const auto arguments =
      arguments_of(batch, {address(batch.temp), address(blocks),
                           address(blocks + count * blocks_per_item * sizeof(kernels::Lz4BatchBlock)),
                           number(blocks_per_item), number(batch.framing), number(count)});
  std::vector launches = {launch(kernels::kLz4BatchIndex, kernels::kLz4BatchPlanShape, count, arguments)};
  if (blocks_per_item != 0)
    launches.push_back(
        launch(kernels::kLz4BatchBlocks, kernels::kLz4DecompressShape, count * blocks_per_item, arguments));
  launches.push_back(launch(kernels::kLz4BatchFinish, kernels::kLz4DecompressShape, count, arguments));
  return launches;
}

}  // namespace

Result<BatchRequirements> lz4_requirements(uint64_t max_input_bytes, uint64_t item_count, Framing framing) {
  const auto temp = temp_of(max_input_bytes, item_count, framing);
  if (!temp) return tl::unexpected(temp.error());
  return BatchRequirements{
      .input_alignment = kernels::kStrideUnitBytes,
      .output_alignment = 1,
      .temp_alignment = kernels::kStrideUnitBytes,
      .temp_bytes = temp->record_bytes + temp->slot_bytes,
      .output_bytes_bound = kernels::lz4_batch_bound(max_input_bytes, static_cast<BatchFraming>(framing)),
      .decompress_temp_bytes = has_blocks(framing) ? block_lists_bytes(max_input_bytes, item_count) : 0};
}

Launches lz4_launches(const BatchCompression& batch, uint64_t few_pages) {
  const auto temp = temp_of(batch.max_input_bytes, batch.item_count, batch.framing);
  if (!temp) return tl::unexpected(temp.error());
  const uint64_t records = temp->record_bytes == 0 ? 0 : batch.temp;
  const bool by_block =
      batch.max_input_bytes <= kernels::kMaxPageBytes && batch.item_count < few_pages && !has_blocks(batch.framing);
  const auto arguments =
      arguments_of(batch, {address(records), address(records + temp->record_bytes), number(batch.max_input_bytes),
                           number(temp->chunks_per_item),
                           number(static_cast<uint32_t>(batch.framing) | (by_block ? kernels::kBatchPagesByBlock : 0)),
                           number(batch.item_count)});
  if (by_block) {
    return std::vector{
        launch(kernels::kLz4BatchCompressChunk, kernels::kLz4CompressChunkShape, batch.item_count, arguments)};
  }
  const uint64_t chunk_count = batch.item_count * temp->chunks_per_item;
  std::vector<BatchLaunch> launches = {
      launch(kernels::kLz4BatchCompressPage, kernels::kLz4CompressPageShape, batch.item_count, arguments)};
  if (batch.max_input_bytes > kernels::kMaxPageBytes) {
    launches.push_back(
        launch(kernels::kLz4BatchCompressChunk, kernels::kLz4CompressChunkShape, chunk_count, arguments));
  }
  if (batch.max_input_bytes > kernels::kMaxChunkBytes || has_blocks(batch.framing)) {
    launches.push_back(launch(kernels::kLz4BatchPlan, kernels::kLz4BatchPlanShape, batch.item_count, arguments));
    launches.push_back(launch(kernels::kLz4BatchJoin, kernels::kLz4BatchJoinShape, chunk_count, arguments));
  }
  return launches;
}

Launches lz4_launches(const BatchDecompression& batch) {
  if (has_blocks(batch.framing)) return launches_by_block(batch);
  return std::vector{launch(kernels::kLz4BatchDecompress, kernels::kLz4DecompressShape, batch.item_count,
                            arguments_of(batch, {number(batch.framing), number(batch.item_count)}))};
}

Launches lz4_launches(const BatchSizes& batch) {
  return std::vector{launch(kernels::kLz4BatchSizes, kernels::kLz4DecompressShape, batch.item_count,
                            {address(batch.inputs), address(batch.input_bytes), address(batch.output_bytes),
                             address(batch.statuses), number(batch.framing), number(batch.item_count)})};
}

}  // namespace ptxkit::library
