// Decodes a batch of items of Deflate with the kernel, in the memory of one device.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "fkr_tests/cases/deflate_streams.hpp"
#include "fkr_tests/cases/zstd_chain.hpp"
#include "kernels/deflate/inflate_format.hpp"

namespace ptxkit::testing {

// An item, and what is wrong with it.
struct InflateTestItem {
  Bytes bytes;
  uint64_t room = 0;
  std::optional<uint64_t> claimed_bytes = {}, claimed_room = {};  // if they are not bytes.size() and room
  bool is_null = false, is_room_null = false;
};

struct InflatedBatch {
  std::vector<Bytes> outputs;
  std::vector<uint32_t> statuses;
  std::vector<uint64_t> sizes;
  bool touched_outside = false;  // a byte before or behind a room has changed
};

// Items begin at addresses of every alignment and end where their memory ends; rooms do too, but for a byte on either
// side that nothing writes.
inline InflatedBatch inflate_on(ZstdMachine& machine, const std::vector<InflateTestItem>& items, uint32_t framing) {
  using namespace kernels;
  constexpr uint8_t kPattern = 0x5A;
  std::vector<uint64_t> inputs, input_bytes, outputs, capacities;
  const auto skew_of = [](size_t i) { return 1 + i * 3 % 8; };
  for (const InflateTestItem& item : items) {
    Bytes placed(inputs.size() % 8);
    placed.insert(placed.end(), item.bytes.begin(), item.bytes.end());
    inputs.push_back(item.is_null ? 0 : machine.upload(placed) + inputs.size() % 8);
    input_bytes.push_back(item.claimed_bytes.value_or(item.bytes.size()));
    const size_t skew = skew_of(outputs.size());
    outputs.push_back(item.is_room_null ? 0 : machine.upload(Bytes(skew + item.room + 1, kPattern)) + skew);
    capacities.push_back(item.claimed_room.value_or(item.room));
  }
  const auto count = static_cast<uint32_t>(items.size());
  InflateParameters batch{};
  batch.inputs = machine.upload(inputs);
  batch.input_bytes = machine.upload(input_bytes);
  batch.outputs = machine.upload(outputs);
  batch.output_capacities = machine.upload(capacities);
  batch.output_bytes = machine.allocate(8 * count);
  batch.statuses = machine.allocate(4 * count);
  machine.launch(kInflateBatch, kInflateShape, count,
                 {address(batch.inputs), address(batch.input_bytes), address(batch.outputs),
                  address(batch.output_capacities), address(batch.output_bytes), address(batch.statuses),
                  driver::LaunchArgument::of(framing), driver::LaunchArgument::of(count)});
  InflatedBatch inflated;
  inflated.statuses = machine.download<uint32_t>(batch.statuses, count);
  inflated.sizes = machine.download<uint64_t>(batch.output_bytes, count);
  for (uint32_t i = 0; i < count; ++i) {
    Bytes room;
    if (!items[i].is_room_null) room = machine.download<uint8_t>(outputs[i] - 1, items[i].room + 2);
    inflated.touched_outside |= !room.empty() && (room.front() != kPattern || room.back() != kPattern);
    const size_t size = std::min<size_t>(inflated.sizes[i], items[i].room);
    const auto begin = room.begin() + (room.empty() ? 0 : 1);
    inflated.outputs.emplace_back(begin, begin + static_cast<ptrdiff_t>(room.empty() ? 0 : size));
  }
  return inflated;
}

}  // namespace ptxkit::testing
