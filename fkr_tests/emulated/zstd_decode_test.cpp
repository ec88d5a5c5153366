// Batches of Zstandard frames of libzstd, of our encoder, made by hand and damaged, through the kernels that decode
// them: the bytes and the status of zstd_decode_reference for every item.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fkr_tests/cases/zstd_decode_chain.hpp"
#include "fkr_tests/cases/zstd_frames.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"
#include "fkr_tests/emulated/zstd_machine.hpp"
#include "kernels/zstd/zstd_decode_reference.hpp"
#include "kernels/zstd/zstd_reference.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::EmulatedZstdMachine;
using ptxkit::testing::libzstd_frame;
using ptxkit::testing::ZstdCodedItem;

// The largest room of the items.
uint32_t largest_room(const std::vector<ZstdCodedItem>& items) {
  uint64_t largest = 0;
  for (const ZstdCodedItem& item : items) largest = std::max(largest, item.room);
  return static_cast<uint32_t>(largest);
}

void expect_decoded(const std::vector<ZstdCodedItem>& items, std::string_view build, uint32_t max_output_bytes,
                    uint32_t blocks_per_item) {
  EmulatedZstdMachine machine(build);
  const auto decoded = decode_zstd_batch(machine, items, max_output_bytes, blocks_per_item);
  EXPECT_FALSE(decoded.touched_outside);
  for (size_t i = 0; i < items.size(); ++i) {
    Bytes expected(std::min<uint64_t>(items[i].room, max_output_bytes));
    auto outcome = zstd_decode_reference(items[i].bytes, expected);
    if (outcome.status == BatchStatus::output_too_small && items[i].room > max_output_bytes)
      outcome.status = BatchStatus::too_large;
    SCOPED_TRACE("item " + std::to_string(i) + ", " + std::string(build) + ", " + std::to_string(blocks_per_item) +
                 " blocks: '" + std::string(outcome.reason) + "'");
    expected.resize(outcome.size_bytes);
    ASSERT_EQ(decoded.statuses[i], static_cast<uint32_t>(outcome.status));
    ASSERT_EQ(decoded.sizes[i], expected.size());
    ASSERT_TRUE(decoded.outputs[i] == expected);
  }
}
// In one launch, and by the chain: items of up to two compressed blocks are listed, others are not.
void expect_decoded(const std::vector<ZstdCodedItem>& items, std::string_view build) {
  for (const uint32_t blocks_per_item : {0u, 2u}) expect_decoded(items, build, largest_room(items), blocks_per_item);
}

TEST(ZstdDecode, FramesByHand) {
  for (const auto build : ptxkit::testing::kVariants) {
    std::vector<ZstdCodedItem> items;
    for (const auto& frame : ptxkit::testing::zstd_frames_by_hand()) {
      if (frame.room <= 3000) items.push_back({.bytes = frame.item, .room = frame.room});
    }
    ASSERT_GT(items.size(), 90u);
    expect_decoded(items, build);
  }
}

// Sequences that are counted with three bytes.
TEST(ZstdDecode, LargeFramesByHand) {
  for (const auto& frame : ptxkit::testing::zstd_frames_by_hand()) {
    if (frame.room > 3000) expect_decoded({{.bytes = frame.item, .room = frame.room}}, "release");
  }
}

TEST(ZstdDecode, FramesOfLibzstdAndOurs) {
  for (const auto build : ptxkit::testing::kVariants) {
    std::vector<ZstdCodedItem> items;
    for (const Bytes& raw : ptxkit::testing::zstd_decode_contents(build == "debug" ? 2000 : 9000)) {
      for (const int level : {1, 3, 9, 19}) items.push_back({.bytes = libzstd_frame(raw, level), .room = raw.size()});
      items.push_back(
          {.bytes = libzstd_frame(raw, 19, {.with_checksum = true, .block_bytes = 1340}), .room = raw.size()});
      items.push_back({.bytes = libzstd_frame(raw, 3, {.without_size = true, .window_log = 10, .flush_bytes = 900}),
                       .room = raw.size() + 7});
      items.push_back({.bytes = zstd_frame_reference(raw, kHighVariant, true), .room = raw.size()});
    }
    expect_decoded(items, build);
  }
}

TEST(ZstdDecode, FramesOfSeveralBlocks) {
  std::vector<ZstdCodedItem> items;
  const Bytes raw = ptxkit::testing::matchable_bytes(290'000, 3);
  for (const int level : {1, 19}) items.push_back({.bytes = libzstd_frame(raw, level), .room = raw.size()});
  for (const uint32_t blocks_per_item : {0u, 3u})
    expect_decoded(items, "release", static_cast<uint32_t>(raw.size()), blocks_per_item);
}

TEST(ZstdDecode, CorpusFiles) {
  PTXKIT_REQUIRE_CORPUS();
  std::vector<ZstdCodedItem> items;
  for (const auto& path : ptxkit::testing::corpus_files()) {
    const Bytes raw = ptxkit::testing::read_prefix(path, 20'000);
    for (const int level : {1, 3, 9, 19}) items.push_back({.bytes = libzstd_frame(raw, level), .room = raw.size()});
  }
  expect_decoded(items, "release");
}

TEST(ZstdDecode, DamagedFrames) {
  std::mt19937 random(7);
  const auto frames = ptxkit::testing::zstd_items_to_damage(2000);
  for (const auto build : ptxkit::testing::kVariants) {
    std::vector<ZstdCodedItem> items;
    for (size_t i = 0; i < (build == "debug" ? 100u : 800u); ++i) {
      const auto& frame = frames[i % frames.size()];
      items.push_back(
          {.bytes = ptxkit::testing::damaged_zstd(frame.item, random), .room = frame.raw.size() + random() % 500});
    }
    expect_decoded(items, build);
  }
}

TEST(ZstdDecode, RoomsThatAreTooSmall) {
  std::vector<ZstdCodedItem> items;
  const Bytes raw = ptxkit::testing::mixed_content(3000);
  for (const bool without_size : {false, true}) {
    const Bytes frame = libzstd_frame(raw, 9, {.without_size = without_size, .block_bytes = 1340});
    for (const size_t room : {size_t{0}, size_t{1}, raw.size() / 2, raw.size() - 1, raw.size(), raw.size() + 1})
      items.push_back({.bytes = frame, .room = room});
  }
  for (const auto build : ptxkit::testing::kVariants) {
    expect_decoded(items, build);
    for (const uint32_t blocks_per_item : {0u, 9u})
      expect_decoded(items, build, static_cast<uint32_t>(raw.size() - 1), blocks_per_item);
  }
}

TEST(ZstdDecode, AnItemThatIsWrongAffectsNoOther) {
  const Bytes raw = ptxkit::testing::matchable_bytes(1000, 1), frame = libzstd_frame(raw, 3);
  const std::vector<ZstdCodedItem> items = {
      {.bytes = frame, .room = raw.size()},
      {.bytes = frame, .room = raw.size(), .claimed_bytes = uint64_t{1} << 32 | frame.size()},
      {.bytes = frame, .room = raw.size(), .is_null = true},
      {.bytes = frame, .room = raw.size(), .is_room_null = true},
      {.bytes = {}, .room = raw.size(), .is_null = true},
      {.bytes = frame, .room = raw.size(), .claimed_room = uint64_t{1} << 32 | raw.size()},
      {.bytes = frame, .room = 0, .is_room_null = true},
      {.bytes = frame, .room = raw.size()}};
  for (const uint32_t blocks_per_item : {0u, 1u}) {
    EmulatedZstdMachine machine("debug");
    const auto decoded = decode_zstd_batch(machine, items, static_cast<uint32_t>(raw.size()), blocks_per_item);
    std::vector<uint32_t> expected;
    for (const BatchStatus status :
         {BatchStatus::ok, BatchStatus::too_large, BatchStatus::invalid_value, BatchStatus::invalid_value,
          BatchStatus::cannot_decompress, BatchStatus::ok, BatchStatus::output_too_small, BatchStatus::ok})
      expected.push_back(static_cast<uint32_t>(status));
    EXPECT_EQ(decoded.statuses, expected);
    EXPECT_FALSE(decoded.touched_outside);
    for (const size_t i : {0u, 5u, 7u}) EXPECT_TRUE(decoded.outputs[i] == raw);
  }
}

}  // namespace
}  // namespace ptxkit::kernels
