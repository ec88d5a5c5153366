// The Zstandard decoder on a GPU: the bytes and statuses of the reference, and the time of each kernel.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "fkr_tests/cases/zstd_decode_chain.hpp"
#include "fkr_tests/device/device.hpp"
#include "fkr_tests/device/zstd_machine.hpp"
#include "kernels/zstd/zstd_decode_reference.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::DeviceZstdMachine;
using ptxkit::testing::libzstd_frame;
using ptxkit::testing::ZstdCodedItem;

size_t number_of(const char* variable, size_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoul(text);
}

// In one launch, and by the chain.
void expect_decoded(const std::vector<ZstdCodedItem>& items) {
  uint64_t largest = 0;
  for (const ZstdCodedItem& item : items) largest = std::max(largest, item.room);
  for (const uint32_t blocks_per_item : {0u, 2u}) {
    DeviceZstdMachine machine;
    const auto decoded = decode_zstd_batch(machine, items, static_cast<uint32_t>(largest), blocks_per_item);
    EXPECT_FALSE(decoded.touched_outside);
    for (size_t i = 0; i < items.size(); ++i) {
      Bytes expected(items[i].room);
      const auto outcome = zstd_decode_reference(items[i].bytes, expected);
      SCOPED_TRACE("item " + std::to_string(i) + ", " + std::to_string(blocks_per_item) + " blocks: '" +
                   std::string(outcome.reason) + "'");
      expected.resize(outcome.size_bytes);
      ASSERT_EQ(decoded.statuses[i], static_cast<uint32_t>(outcome.status));
      ASSERT_EQ(decoded.sizes[i], expected.size());
      ASSERT_TRUE(decoded.outputs[i] == expected);
    }
  }
}

TEST(DeviceShortZstd, DecodesFramesByHand) {
  PTXKIT_REQUIRE_DEVICE();
  std::vector<ZstdCodedItem> items;
  for (const auto& frame : ptxkit::testing::zstd_frames_by_hand()) {
    if (frame.room <= 3000) items.push_back({.bytes = frame.item, .room = frame.room});
  }
  expect_decoded(items);
}

TEST(DeviceZstd, DecodesFramesOfLibzstd) {
  PTXKIT_REQUIRE_DEVICE();
  std::vector<ZstdCodedItem> items;
  for (const Bytes& raw : ptxkit::testing::zstd_decode_contents(400'000)) {
    for (const int level : {1, 3, 9, 19}) items.push_back({.bytes = libzstd_frame(raw, level), .room = raw.size()});
    items.push_back(
        {.bytes = libzstd_frame(raw, 19, {.with_checksum = true, .block_bytes = 1340}), .room = raw.size()});
  }
  expect_decoded(items);
}

// $PTXKIT_ZSTD_DAMAGED frames (default 2000), none of which may hang or harm another.
TEST(DeviceZstd, DecodesDamagedFrames) {
  PTXKIT_REQUIRE_DEVICE();
  const size_t wanted = number_of("PTXKIT_ZSTD_DAMAGED", 2000);
  const auto frames = ptxkit::testing::zstd_items_to_damage();
  std::mt19937 random(11);
  for (size_t done = 0; done < wanted;) {
    std::vector<ZstdCodedItem> items;
    for (; items.size() < 500 && done < wanted; ++done) {
      const auto& frame = frames[done % frames.size()];
      items.push_back(
          {.bytes = ptxkit::testing::damaged_zstd(frame.item, random), .room = frame.raw.size() + random() % 500});
    }
    expect_decoded(items);
    if (HasFatalFailure()) return;
  }
}

// Every file in items of 256 KiB, repeated to at least $PTXKIT_ZSTD_MIB (default 1), as libzstd writes it at several
// levels; prints GB/s of each kernel.
TEST(DeviceZstd, DecodesCorpusAndSpeed) {
  PTXKIT_REQUIRE_DEVICE();
  PTXKIT_REQUIRE_CORPUS();
  const size_t wanted_bytes = number_of("PTXKIT_ZSTD_MIB", 1) << 20;
  constexpr uint32_t kItemBytes = 256 << 10;
  for (const auto& path : ptxkit::testing::corpus_files()) {
    const Bytes raw = ptxkit::testing::read_prefix(path, 16 << 20);
    for (const int level : {1, 3, 9, 19}) {
      std::vector<ZstdCodedItem> pieces, items;
      std::vector<Bytes> raws;
      for (size_t at = 0; at < raw.size(); at += kItemBytes) {
        const auto begin = raw.begin() + static_cast<ptrdiff_t>(at);
        raws.emplace_back(begin, begin + static_cast<ptrdiff_t>(std::min<size_t>(kItemBytes, raw.size() - at)));
        pieces.push_back({.bytes = libzstd_frame(raws.back(), level), .room = raws.back().size()});
      }
      size_t raw_bytes = 0;
      for (; raw_bytes < wanted_bytes || items.size() < pieces.size(); raw_bytes += items.back().room)
        items.push_back(pieces[items.size() % pieces.size()]);
      for (const uint32_t blocks_per_item : {0u, zstd_blocks_per_item(kItemBytes)}) {
        DeviceZstdMachine machine;
        const auto decoded = decode_zstd_batch(machine, items, kItemBytes, blocks_per_item);
        for (size_t i = 0; i < items.size(); ++i) {
          ASSERT_EQ(decoded.statuses[i], static_cast<uint32_t>(BatchStatus::ok)) << path.filename() << ", item " << i;
          ASSERT_TRUE(decoded.outputs[i] == raws[i % raws.size()]) << path.filename() << ", item " << i;
        }
        std::cout << path.filename().string() << ", level " << level;
        machine.print_rates(raw_bytes);
      }
    }
  }
}

}  // namespace
}  // namespace ptxkit::kernels
