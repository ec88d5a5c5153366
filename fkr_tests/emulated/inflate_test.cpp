// Batches of Deflate of libdeflate and zlib, made by hand and damaged, through the kernel that decodes them: the bytes
// and the status of inflate_reference for every item.
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fkr_tests/cases/inflate_batches.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"
#include "fkr_tests/emulated/zstd_machine.hpp"
#include "kernels/deflate/inflate_reference.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::DeflateFraming;
using ptxkit::testing::EmulatedZstdMachine;
using ptxkit::testing::InflateTestItem;
using ptxkit::testing::libdeflate_item;
using ptxkit::testing::zlib_item;

using Items = std::map<DeflateFraming, std::vector<InflateTestItem>>;

void expect_inflated(const Items& batches, std::string_view build) {
  for (const auto& [framing, items] : batches) {
    EmulatedZstdMachine machine(build);
    const auto inflated = inflate_on(machine, items, static_cast<uint32_t>(framing));
    EXPECT_FALSE(inflated.touched_outside);
    for (size_t i = 0; i < items.size(); ++i) {
      Bytes expected(items[i].room);
      const auto outcome = inflate_reference(items[i].bytes, expected, framing);
      SCOPED_TRACE("item " + std::to_string(i) + ", framing " + std::to_string(static_cast<uint32_t>(framing)) + ", " +
                   std::string(build) + ": '" + std::string(outcome.reason) + "'");
      expected.resize(outcome.size_bytes);
      ASSERT_EQ(inflated.statuses[i], static_cast<uint32_t>(outcome.status));
      ASSERT_EQ(inflated.sizes[i], expected.size());
      ASSERT_TRUE(inflated.outputs[i] == expected);
    }
  }
}

TEST(Inflate, ItemsByHand) {
  for (const auto build : ptxkit::testing::kVariants) {
    Items batches;
    for (const auto& by_hand : ptxkit::testing::deflate_cases_by_hand()) {
      if (build == "debug" && by_hand.room > 5000) continue;
      batches[by_hand.framing].push_back({.bytes = by_hand.item, .room = by_hand.room});
    }
    ASSERT_EQ(batches.size(), build == "debug" ? 3u : 4u);
    expect_inflated(batches, build);
  }
}

TEST(Inflate, WhatLibrariesWrite) {
  for (const auto build : ptxkit::testing::kVariants) {
    Items batches;
    for (const Bytes& raw : ptxkit::testing::deflate_contents(build == "debug" ? 2000 : 12'000)) {
      for (const int level : {0, 1, 6, 9, 12})
        batches[DeflateFraming::raw].push_back({.bytes = libdeflate_item(raw, level), .room = raw.size()});
      for (const auto framing : {DeflateFraming::zlib, DeflateFraming::gzip})
        batches[framing].push_back({.bytes = libdeflate_item(raw, 6, framing), .room = raw.size() + 7});
      for (const int strategy : {Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED})
        batches[DeflateFraming::raw].push_back(
            {.bytes = zlib_item(raw, 6, {.strategy = strategy}), .room = raw.size()});
      batches[DeflateFraming::raw].push_back({.bytes = zlib_item(raw, 9, {.memory_level = 1}), .room = raw.size()});
      for (const int flush : {Z_PARTIAL_FLUSH, Z_SYNC_FLUSH})
        batches[DeflateFraming::raw].push_back(
            {.bytes = zlib_item(raw, 4, {.flush_bytes = 1500, .flush = flush}), .room = raw.size()});
    }
    expect_inflated(batches, build);
  }
}

TEST(Inflate, LargeItems) {
  Items batches;
  const Bytes raw = ptxkit::testing::matchable_bytes(400'000, 3);
  for (const int level : {1, 12})
    batches[DeflateFraming::gzip].push_back(
        {.bytes = libdeflate_item(raw, level, DeflateFraming::gzip), .room = raw.size()});
  batches[DeflateFraming::zlib].push_back(
      {.bytes = libdeflate_item(Bytes(6 << 20, 0xFF), 6, DeflateFraming::zlib), .room = 6 << 20});
  expect_inflated(batches, "release");
}

TEST(Inflate, CorpusFiles) {
  PTXKIT_REQUIRE_CORPUS();
  Items batches;
  for (const auto& path : ptxkit::testing::corpus_files()) {
    const Bytes raw = ptxkit::testing::read_prefix(path, 40'000);
    for (const int level : {1, 6, 9, 12})
      batches[DeflateFraming::gzip].push_back(
          {.bytes = libdeflate_item(raw, level, DeflateFraming::gzip), .room = raw.size()});
  }
  expect_inflated(batches, "release");
}

TEST(Inflate, DamagedItems) {
  std::mt19937 random(7);
  const auto items = ptxkit::testing::deflate_items_to_damage(2000);
  for (const auto build : ptxkit::testing::kVariants) {
    Items batches;
    for (size_t i = 0; i < (build == "debug" ? 200u : 2000u); ++i) {
      const auto& item = items[i % items.size()];
      batches[item.framing].push_back(
          {.bytes = ptxkit::testing::damaged_deflate(item.item, random), .room = item.raw.size() + random() % 500});
    }
    expect_inflated(batches, build);
  }
}

TEST(Inflate, RoomsThatAreTooSmall) {
  const Bytes raw = ptxkit::testing::mixed_content(3000);
  for (const auto build : ptxkit::testing::kVariants) {
    Items batches;
    for (const Bytes& item : {libdeflate_item(raw, 9), zlib_item(raw, 0), zlib_item(raw, 6, {.strategy = Z_FIXED})}) {
      for (const size_t room : {size_t{0}, size_t{1}, raw.size() / 2, raw.size() - 1, raw.size(), raw.size() + 1})
        batches[DeflateFraming::raw].push_back({.bytes = item, .room = room});
    }
    expect_inflated(batches, build);
  }
}

TEST(Inflate, AnItemThatIsWrongAffectsNoOther) {
  const Bytes raw = ptxkit::testing::matchable_bytes(1000, 1), item = libdeflate_item(raw, 6);
  const std::vector<InflateTestItem> items = {
      {.bytes = item, .room = raw.size()},
      {.bytes = item, .room = raw.size(), .claimed_bytes = uint64_t{1} << 32 | item.size()},
      {.bytes = item, .room = raw.size(), .claimed_bytes = kInflateMaxCodedBytes + 1},
      {.bytes = item, .room = raw.size(), .is_null = true},
      {.bytes = item, .room = raw.size(), .is_room_null = true},
      {.bytes = {}, .room = raw.size(), .is_null = true},
      {.bytes = item, .room = raw.size(), .claimed_room = uint64_t{1} << 32 | raw.size()},
      {.bytes = item, .room = 0, .is_room_null = true},
      {.bytes = item, .room = raw.size()}};
  const auto expect_statuses = [&](uint32_t framing, const std::vector<BatchStatus>& statuses) {
    EmulatedZstdMachine machine("debug");
    const auto inflated = inflate_on(machine, items, framing);
    std::vector<uint32_t> expected;
    for (const BatchStatus status : statuses) expected.push_back(static_cast<uint32_t>(status));
    EXPECT_EQ(inflated.statuses, expected);
    EXPECT_FALSE(inflated.touched_outside);
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_TRUE(statuses[i] != BatchStatus::ok || inflated.outputs[i] == raw) << i;
    }
  };
  using enum BatchStatus;
  expect_statuses(static_cast<uint32_t>(DeflateFraming::raw), {ok, too_large, too_large, invalid_value, invalid_value,
                                                               cannot_decompress, ok, output_too_small, ok});
  expect_statuses(4, std::vector<BatchStatus>(items.size(), invalid_value));
}

}  // namespace
}  // namespace ptxkit::kernels
