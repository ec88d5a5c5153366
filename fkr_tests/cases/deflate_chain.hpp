// Batches of items made into streams of Deflate by both kernels of the encoder, one after the other in one device's
// memory, for the emulator and for a GPU.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/zstd_chain.hpp"
#include "kernels/deflate/deflate_encode_format.hpp"

namespace ptxkit::testing {

inline constexpr kernels::DeflateFraming kEveryDeflateFraming[] = {
    kernels::DeflateFraming::raw, kernels::DeflateFraming::zlib, kernels::DeflateFraming::gzip,
    kernels::DeflateFraming::bgzf};

struct DeflatedItems {
  std::vector<Bytes> streams;
  std::vector<uint32_t> statuses;
  std::vector<Bytes> matches;  // of each item, as deflate_match lists them
};

// Rooms have every alignment.
inline DeflatedItems deflate_on(ZstdMachine& machine, const std::vector<ZstdItem>& items, uint32_t max_input_bytes,
                                kernels::DeflateFraming framing, bool is_high) {
  using namespace kernels;
  std::vector<uint64_t> inputs, outputs, input_bytes, room_bytes;
  for (const ZstdItem& item : items) {
    Bytes padded(item.misalignment);
    padded.insert(padded.end(), item.bytes.begin(), item.bytes.end());
    padded.resize((padded.size() / kStrideUnitBytes + 1) * kStrideUnitBytes);
    inputs.push_back(item.is_null ? 0 : machine.upload(padded) + item.misalignment);
    input_bytes.push_back(item.claimed_bytes.value_or(item.bytes.size()));
    room_bytes.push_back(deflate_batch_bound(item.bytes.size(), framing));
    const uint64_t shift = outputs.size() % 4;
    outputs.push_back(item.is_room_null ? 0 : machine.allocate(room_bytes.back() + shift) + shift);
  }
  const auto item_count = static_cast<uint32_t>(items.size());
  const size_t list_bytes = size_t{4} * deflate_list_words(max_input_bytes);
  DeflateBatchParameters batch{};
  batch.inputs = machine.upload(inputs);
  batch.input_bytes = machine.upload(input_bytes);
  batch.outputs = machine.upload(outputs);
  batch.output_bytes = machine.allocate(8 * item_count);
  batch.statuses = machine.allocate(4 * item_count);
  batch.matches = machine.allocate(item_count * list_bytes);
  batch.match_counts = machine.allocate(4 * item_count);
  batch.tokens = machine.allocate(size_t{4} * item_count * deflate_token_words(max_input_bytes));
  const std::vector<driver::LaunchArgument> arguments = {address(batch.inputs),
                                                         address(batch.input_bytes),
                                                         address(batch.outputs),
                                                         address(batch.output_bytes),
                                                         address(batch.statuses),
                                                         address(batch.matches),
                                                         address(batch.match_counts),
                                                         address(batch.tokens),
                                                         driver::LaunchArgument::of(max_input_bytes),
                                                         driver::LaunchArgument::of(static_cast<uint32_t>(framing)),
                                                         driver::LaunchArgument::of(item_count)};
  machine.launch(is_high ? kDeflateMatchHigh : kDeflateMatch, kDeflateMatchShape, item_count, arguments);
  machine.launch(kDeflateEncode, kDeflateEncodeShape, item_count, arguments);

  DeflatedItems made{{}, machine.download<uint32_t>(batch.statuses, item_count), {}};
  const auto output_bytes = machine.download<uint64_t>(batch.output_bytes, item_count);
  const auto match_counts = machine.download<uint32_t>(batch.match_counts, item_count);
  for (uint32_t i = 0; i < item_count; ++i) {
    EXPECT_LE(output_bytes[i], room_bytes[i]);
    made.streams.push_back(machine.download<uint8_t>(outputs[i], std::min(output_bytes[i], room_bytes[i])));
    made.matches.push_back(machine.download<uint8_t>(batch.matches + i * list_bytes, size_t{8} * match_counts[i]));
  }
  return made;
}

// Items of every kind: those of zstd_blocks, runs whose matches have every length around the longest, codes that are
// limited to 15 bits, and items for which fixed codes are smallest.
inline std::vector<Bytes> deflate_items(size_t longest) {
  std::vector<Bytes> items = zstd_blocks(longest);
  for (size_t size = 1; size < 36; ++size) items.push_back(matchable_bytes(size, static_cast<uint32_t>(size)));
  for (size_t length = 255; length < 268; ++length) {
    Bytes run = random_bytes(40, 1);
    run.resize(run.size() + length, run.back());
    const Bytes tail = random_bytes(20, 2);
    run.insert(run.end(), tail.begin(), tail.end());
    items.push_back(run);
  }
  for (const size_t size : {longest - 1, longest - 2, longest - 3}) {
    items.push_back(fibonacci_bytes(size));
    items.push_back(matchable_bytes(size, 3));
  }
  return items;
}

}  // namespace ptxkit::testing
