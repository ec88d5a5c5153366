// Batches of items made into Zstandard frames by all kernels of the chain, one after the other in one device's memory,
// for the emulator and for a GPU.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/zstd_cases.hpp"
#include "kernels/abi.hpp"
#include "kernels/zstd/zstd_format.hpp"
#include "runtime/driver/launch_contract.hpp"

namespace ptxkit::testing {

// What runs the kernels. Failures are thrown.
class ZstdMachine {
 public:
  virtual ~ZstdMachine() = default;
  // Memory without a content, 16-byte aligned.
  virtual uint64_t allocate(size_t size_bytes) = 0;
  virtual void write(uint64_t address, std::span<const uint8_t> bytes) = 0;
  virtual Bytes read(uint64_t address, size_t size_bytes) = 0;
  virtual void launch(std::string_view kernel, const kernels::LaunchShape& shape, uint32_t count,
                      const std::vector<driver::LaunchArgument>& arguments) = 0;

  template <class T>
  uint64_t upload(const std::vector<T>& values) {
    const uint64_t address = allocate(std::max<size_t>(values.size() * sizeof(T), 1));
    write(address, {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)});
    return address;
  }
  template <class T>
  std::vector<T> download(uint64_t address, size_t count) {
    std::vector<T> values(count);
    const Bytes bytes = read(address, count * sizeof(T));
    if (count != 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

// An item, and what is wrong with it.
struct ZstdItem {
  Bytes bytes;
  std::optional<uint64_t> claimed_bytes = {};  // input_bytes, if it is not bytes.size()
  uint32_t misalignment = 0;
  bool is_null = false, is_room_null = false;
};

struct ZstdFrames {
  std::vector<Bytes> frames;
  std::vector<uint32_t> statuses;
};

inline driver::LaunchArgument address(uint64_t value) { return driver::LaunchArgument::of_address(value); }

inline ZstdFrames make_zstd_frames(ZstdMachine& machine, const std::vector<ZstdItem>& items, uint32_t max_input_bytes,
                                   bool is_high) {
  using namespace kernels;
  std::vector<uint64_t> inputs, outputs;
  std::vector<uint64_t> input_bytes, room_bytes;
  for (const ZstdItem& item : items) {
    Bytes padded(item.misalignment);
    padded.insert(padded.end(), item.bytes.begin(), item.bytes.end());
    padded.resize((padded.size() / kStrideUnitBytes + 1) * kStrideUnitBytes);
    inputs.push_back(item.is_null ? 0 : machine.upload(padded) + item.misalignment);
    input_bytes.push_back(item.claimed_bytes.value_or(item.bytes.size()));
    room_bytes.push_back(zstd_batch_bound(item.bytes.size()));
    outputs.push_back(item.is_room_null ? 0 : machine.allocate(room_bytes.back() + 1) + 1);
  }
  const auto item_count = static_cast<uint32_t>(items.size());
  const uint32_t per_item = std::max(1u, (max_input_bytes + kZstdBlockBytes - 1) / kZstdBlockBytes);
  const uint32_t blocks = item_count * per_item;
  const auto array = [&](uint64_t bytes_of_block) { return machine.allocate(blocks * bytes_of_block); };
  ZstdBatchParameters batch{};
  batch.inputs = machine.upload(inputs);
  batch.input_bytes = machine.upload(input_bytes);
  batch.outputs = machine.upload(outputs);
  batch.output_bytes = machine.allocate(8 * item_count);
  batch.statuses = machine.allocate(4 * item_count);
  batch.blocks = array(8);
  batch.block_bytes = array(4);
  batch.literal_offsets = array(8);
  batch.list_offsets = array(8);
  batch.section_offsets = array(8);
  batch.section_capacities = array(4);
  batch.literal_sections = array(kZstdSectionBytes);
  batch.literal_section_bytes = array(4);
  batch.sequence_sections = array(kZstdSectionBytes);
  batch.sequence_section_bytes = array(4);
  batch.places = array(4);
  const uint64_t matches = array(kZstdListBytes), match_counts = array(4);
  const uint64_t literals = array(kZstdBlockBytes), literal_counts = array(4);
  const uint64_t sequences = array(kZstdListBytes), sequence_bytes = array(4);
  const uint64_t section_statuses = array(4);
  const auto of_batch = [&](std::string_view kernel, const LaunchShape& shape, uint32_t count) {
    machine.launch(
        kernel, shape, count,
        {address(batch.inputs), address(batch.input_bytes), address(batch.outputs), address(batch.output_bytes),
         address(batch.statuses), address(batch.blocks), address(batch.block_bytes), address(batch.literal_offsets),
         address(batch.list_offsets), address(batch.section_offsets), address(batch.section_capacities),
         address(batch.literal_sections), address(batch.literal_section_bytes), address(batch.sequence_sections),
         address(batch.sequence_section_bytes), address(batch.places), driver::LaunchArgument::of(max_input_bytes),
         driver::LaunchArgument::of(per_item), driver::LaunchArgument::of(item_count)});
  };
  of_batch(kZstdBatchSplit, kZstdBatchSplitShape, blocks);
  machine.launch(is_high ? kZstdMatchHigh : kZstdMatch, kZstdMatchShape, blocks,
                 {address(batch.blocks), address(batch.block_bytes), address(matches), address(match_counts),
                  driver::LaunchArgument::of(blocks)});
  machine.launch(
      kZstdChoose, kZstdChooseShape, blocks,
      {address(batch.blocks), address(batch.block_bytes), address(matches), address(match_counts), address(literals),
       address(literal_counts), address(sequences), address(sequence_bytes), driver::LaunchArgument::of(blocks)});
  const auto transform = [&](std::string_view kernel, uint64_t src, uint64_t offsets, uint64_t sizes, uint64_t dst,
                             uint64_t dst_sizes) {
    machine.launch(kernel, kZstdChooseShape, blocks,
                   {address(src), address(offsets), address(sizes), address(dst), address(batch.section_offsets),
                    address(batch.section_capacities), address(dst_sizes), address(section_statuses),
                    driver::LaunchArgument::of(blocks)});
  };
  transform(kZstdLiterals, literals, batch.literal_offsets, literal_counts, batch.literal_sections,
            batch.literal_section_bytes);
  transform(kZstdSequences, sequences, batch.list_offsets, sequence_bytes, batch.sequence_sections,
            batch.sequence_section_bytes);
  of_batch(kZstdBatchPlan, kZstdBatchPlanShape, item_count);
  of_batch(kZstdBatchJoin, kZstdBatchJoinShape, blocks);

  ZstdFrames made{{}, machine.download<uint32_t>(batch.statuses, item_count)};
  const auto output_bytes = machine.download<uint64_t>(batch.output_bytes, item_count);
  for (uint32_t i = 0; i < item_count; ++i) {
    EXPECT_LE(output_bytes[i], room_bytes[i]);
    made.frames.push_back(machine.download<uint8_t>(outputs[i], std::min(output_bytes[i], room_bytes[i])));
  }
  return made;
}

// Items of every kind and size, and the largest size.
inline std::pair<std::vector<ZstdItem>, uint32_t> zstd_items_of_several_blocks() {
  std::vector<ZstdItem> items;
  for (const Bytes& raw : {Bytes(), Bytes(200'000, 'x'), random_bytes(65'537, 1)}) items.push_back({.bytes = raw});
  for (const uint32_t size : {65'536u, 65'791u, 65'792u, 131'072u, 131'073u, 250'000u})
    items.push_back({.bytes = mixed_content(size)});
  return {items, 250'000};
}

}  // namespace ptxkit::testing
