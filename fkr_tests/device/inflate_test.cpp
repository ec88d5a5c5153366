// The Deflate decoder on a GPU: the bytes and statuses of the reference, and its speed.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "fkr_tests/cases/inflate_batches.hpp"
#include "fkr_tests/device/device.hpp"
#include "fkr_tests/device/zstd_machine.hpp"
#include "kernels/deflate/inflate_reference.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::DeflateFraming;
using ptxkit::testing::DeviceZstdMachine;
using ptxkit::testing::InflateTestItem;
using ptxkit::testing::libdeflate_item;

size_t number_in(const char* variable, size_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoul(text);
}

using Items = std::map<DeflateFraming, std::vector<InflateTestItem>>;

void expect_inflated(const Items& batches) {
  for (const auto& [framing, items] : batches) {
    DeviceZstdMachine machine;
    const auto inflated = inflate_on(machine, items, static_cast<uint32_t>(framing));
    EXPECT_FALSE(inflated.touched_outside);
    for (size_t i = 0; i < items.size(); ++i) {
      Bytes expected(items[i].room);
      const auto outcome = inflate_reference(items[i].bytes, expected, framing);
      SCOPED_TRACE("item " + std::to_string(i) + ", framing " + std::to_string(static_cast<uint32_t>(framing)) + ": '" +
                   std::string(outcome.reason) + "'");
      expected.resize(outcome.size_bytes);
      ASSERT_EQ(inflated.statuses[i], static_cast<uint32_t>(outcome.status));
      ASSERT_EQ(inflated.sizes[i], expected.size());
      ASSERT_TRUE(inflated.outputs[i] == expected);
    }
  }
}

TEST(DeviceShortInflate, DecodesItemsByHand) {
  PTXKIT_REQUIRE_DEVICE();
  Items batches;
  for (const auto& by_hand : ptxkit::testing::deflate_cases_by_hand()) {
    if (by_hand.room <= 5000) batches[by_hand.framing].push_back({.bytes = by_hand.item, .room = by_hand.room});
  }
  expect_inflated(batches);
}

TEST(DeviceInflate, DecodesLargeItemsByHand) {
  PTXKIT_REQUIRE_DEVICE();
  Items batches;
  for (const auto& by_hand : ptxkit::testing::deflate_cases_by_hand()) {
    if (by_hand.room > 5000) batches[by_hand.framing].push_back({.bytes = by_hand.item, .room = by_hand.room});
  }
  expect_inflated(batches);
}

TEST(DeviceInflate, DecodesItemsOfLibraries) {
  PTXKIT_REQUIRE_DEVICE();
  Items batches;
  for (const Bytes& raw : ptxkit::testing::deflate_contents(400'000)) {
    for (const int level : {0, 1, 6, 9, 12}) {
      for (const auto framing : {DeflateFraming::raw, DeflateFraming::zlib, DeflateFraming::gzip})
        batches[framing].push_back({.bytes = libdeflate_item(raw, level, framing), .room = raw.size()});
    }
    for (const int strategy : {Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED})
      batches[DeflateFraming::raw].push_back(
          {.bytes = ptxkit::testing::zlib_item(raw, 6, {.strategy = strategy, .memory_level = 1}), .room = raw.size()});
  }
  expect_inflated(batches);
}

// $PTXKIT_INFLATE_DAMAGED items (default 2000), none of which may hang or harm another.
TEST(DeviceInflate, DecodesDamagedItems) {
  PTXKIT_REQUIRE_DEVICE();
  const size_t wanted = number_in("PTXKIT_INFLATE_DAMAGED", 2000);
  const auto items = ptxkit::testing::deflate_items_to_damage();
  std::mt19937 random(11);
  for (size_t done = 0; done < wanted;) {
    Items batches;
    for (size_t i = 0; i < 500 && done < wanted; ++i, ++done) {
      const auto& item = items[done % items.size()];
      batches[item.framing].push_back(
          {.bytes = ptxkit::testing::damaged_deflate(item.item, random), .room = item.raw.size() + random() % 500});
    }
    expect_inflated(batches);
    if (HasFatalFailure()) return;
  }
}

// Every file in items of $PTXKIT_INFLATE_ITEM_KIB (default 64), repeated to at least $PTXKIT_INFLATE_MIB (default 1),
// as libdeflate writes it at several levels; prints GB/s of raw bytes, with the checksum of gzip and without.
TEST(DeviceInflate, DecodesCorpusAndSpeed) {
  PTXKIT_REQUIRE_DEVICE();
  PTXKIT_REQUIRE_CORPUS();
  const size_t wanted_bytes = number_in("PTXKIT_INFLATE_MIB", 1) << 20;
  const size_t item_bytes = number_in("PTXKIT_INFLATE_ITEM_KIB", 64) << 10;
  for (const auto& path : ptxkit::testing::corpus_files()) {
    const Bytes raw = ptxkit::testing::read_prefix(path, 16 << 20);
    for (const int level : {1, 6, 9, 12}) {
      for (const auto framing : {DeflateFraming::raw, DeflateFraming::gzip}) {
        std::vector<InflateTestItem> pieces, items;
        std::vector<Bytes> raws;
        for (size_t at = 0; at < raw.size(); at += item_bytes) {
          const auto begin = raw.begin() + static_cast<ptrdiff_t>(at);
          raws.emplace_back(begin, begin + static_cast<ptrdiff_t>(std::min<size_t>(item_bytes, raw.size() - at)));
          pieces.push_back({.bytes = libdeflate_item(raws.back(), level, framing), .room = raws.back().size()});
        }
        size_t raw_bytes = 0;
        for (; raw_bytes < wanted_bytes || items.size() < pieces.size(); raw_bytes += items.back().room)
          items.push_back(pieces[items.size() % pieces.size()]);
        DeviceZstdMachine machine;
        const auto inflated = inflate_on(machine, items, static_cast<uint32_t>(framing));
        for (size_t i = 0; i < items.size(); ++i) {
          ASSERT_EQ(inflated.statuses[i], static_cast<uint32_t>(BatchStatus::ok)) << path.filename() << ", item " << i;
          ASSERT_TRUE(inflated.outputs[i] == raws[i % raws.size()]) << path.filename() << ", item " << i;
        }
        std::cout << path.filename().string() << ", level " << level
                  << (framing == DeflateFraming::raw ? ", raw" : ", gzip");
        machine.print_rates(raw_bytes);
      }
    }
  }
}

}  // namespace
}  // namespace ptxkit::kernels
