// Decodes a batch of Zstandard frames with the kernels of the chain in the memory of one device.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fkr_tests/cases/zstd_chain.hpp"
#include "fkr_tests/cases/zstd_frames.hpp"
#include "kernels/zstd/zstd_decode_format.hpp"
#include "kernels/zstd/zstd_decode_reference.hpp"

namespace ptxkit::testing {

// An item, and what is wrong with it.
struct ZstdCodedItem {
  Bytes bytes;
  uint64_t room = 0;
  std::optional<uint64_t> claimed_bytes = {}, claimed_room = {};  // if they are not bytes.size() and room
  bool is_null = false, is_room_null = false;
};

struct ZstdDecodedBatch {
  std::vector<Bytes> outputs;
  std::vector<uint32_t> statuses;
  std::vector<uint64_t> sizes;
  bool touched_outside = false;  // a byte before or behind a room has changed
};

// Items begin at addresses of every alignment and end where their memory ends; rooms begin and end with a byte that
// nothing writes. Without `blocks_per_item` the batch is one launch.
inline ZstdDecodedBatch decode_zstd_batch(ZstdMachine& machine, const std::vector<ZstdCodedItem>& items,
                                          uint32_t max_output_bytes, uint32_t blocks_per_item) {
  using namespace kernels;
  constexpr uint8_t kPattern = 0x5A;
  std::vector<uint64_t> inputs, input_bytes, outputs, capacities;
  for (const ZstdCodedItem& item : items) {
    Bytes placed(inputs.size() % 8);
    placed.insert(placed.end(), item.bytes.begin(), item.bytes.end());
    inputs.push_back(item.is_null ? 0 : machine.upload(placed) + inputs.size() % 8);
    input_bytes.push_back(item.claimed_bytes.value_or(item.bytes.size()));
    outputs.push_back(item.is_room_null ? 0 : machine.upload(Bytes(item.room + 2, kPattern)) + 1);
    capacities.push_back(item.claimed_room.value_or(item.room));
  }
  const auto count = static_cast<uint32_t>(items.size());
  ZstdDecodeParameters batch{};
  batch.inputs = machine.upload(inputs);
  batch.input_bytes = machine.upload(input_bytes);
  batch.outputs = machine.upload(outputs);
  batch.output_capacities = machine.upload(capacities);
  batch.output_bytes = machine.allocate(8 * count);
  batch.statuses = machine.allocate(4 * count);
  batch.literals = machine.allocate(size_t{count} * zstd_literal_room(max_output_bytes));
  batch.sequences = machine.allocate(size_t{count} * zstd_sequence_room(max_output_bytes) * 8);
  const uint32_t blocks = count * blocks_per_item;
  if (blocks != 0) {
    batch.block_counts = machine.allocate(4 * count);
    batch.blocks = machine.allocate(sizeof(ZstdBlockRecord) * blocks);
    batch.literal_states = machine.allocate(4 * blocks);
    batch.block_states = machine.allocate(sizeof(ZstdBlockState) * blocks);
  }
  const auto launch = [&](std::string_view kernel, const LaunchShape& shape, uint32_t size) {
    machine.launch(
        kernel, shape, size,
        {address(batch.inputs), address(batch.input_bytes), address(batch.outputs), address(batch.output_capacities),
         address(batch.output_bytes), address(batch.statuses), address(batch.literals), address(batch.sequences),
         address(batch.block_counts), address(batch.blocks), address(batch.literal_states), address(batch.block_states),
         driver::LaunchArgument::of(max_output_bytes), driver::LaunchArgument::of(blocks_per_item),
         driver::LaunchArgument::of(count)});
  };
  if (blocks != 0) {
    launch(kZstdBatchIndex, kZstdBatchIndexShape, count);
    launch(kZstdBatchReadLiterals, kZstdDecodeShape, blocks);
    launch(kZstdBatchReadSequences, kZstdReadSequencesShape, blocks);
    launch(kZstdBatchExecute, kZstdDecodeShape, count);
  }
  launch(kZstdBatchDecompress, kZstdDecodeShape, count);
  ZstdDecodedBatch decoded;
  decoded.statuses = machine.download<uint32_t>(batch.statuses, count);
  decoded.sizes = machine.download<uint64_t>(batch.output_bytes, count);
  for (uint32_t i = 0; i < count; ++i) {
    Bytes room;
    if (!items[i].is_room_null) room = machine.download<uint8_t>(outputs[i] - 1, items[i].room + 2);
    decoded.touched_outside |= !room.empty() && (room.front() != kPattern || room.back() != kPattern);
    const size_t size = std::min<size_t>(decoded.sizes[i], items[i].room);
    decoded.outputs.emplace_back(room.begin() + 1, room.begin() + 1 + static_cast<ptrdiff_t>(room.empty() ? 0 : size));
  }
  return decoded;
}

}  // namespace ptxkit::testing
