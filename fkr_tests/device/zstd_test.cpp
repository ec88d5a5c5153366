// The Zstandard encoder on a GPU: the frames of the reference, and the time of each kernel.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>

#include <gtest/gtest.h>

#include "fkr_tests/cases/zstd_chain.hpp"
#include "fkr_tests/device/device.hpp"
#include "fkr_tests/device/zstd_machine.hpp"
#include "kernels/zstd/zstd_reference.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::DeviceZstdMachine;
using ptxkit::testing::ZstdFrames;
using ptxkit::testing::ZstdItem;

void expect_frames(const std::vector<ZstdItem>& items, uint32_t largest) {
  for (const bool is_high : {false, true}) {
    DeviceZstdMachine machine;
    const ZstdFrames made = make_zstd_frames(machine, items, largest, is_high);
    EXPECT_EQ(made.statuses, std::vector<uint32_t>(items.size()));
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_TRUE(made.frames[i] == zstd_frame_reference(items[i].bytes, is_high ? kHighVariant : kChunkVariant, false))
          << "item " << i << " of " << items[i].bytes.size() << " bytes";
    }
  }
}

TEST(DeviceShortZstd, BlocksOfEveryKind) {
  PTXKIT_REQUIRE_DEVICE();
  std::vector<ZstdItem> items;
  for (const Bytes& block : ptxkit::testing::zstd_blocks(1500)) items.push_back({.bytes = block});
  expect_frames(items, 1500);
}

TEST(DeviceZstd, ItemsOfSeveralBlocks) {
  PTXKIT_REQUIRE_DEVICE();
  const auto [items, largest] = ptxkit::testing::zstd_items_of_several_blocks();
  expect_frames(items, largest);
}

// Every file in items of 256 KiB, repeated to at least $PTXKIT_ZSTD_MIB (default 1); prints GB/s of each kernel.
TEST(DeviceZstd, CorpusAndSpeed) {
  PTXKIT_REQUIRE_DEVICE();
  PTXKIT_REQUIRE_CORPUS();
  const char* const wanted = std::getenv("PTXKIT_ZSTD_MIB");
  const size_t wanted_bytes = (wanted == nullptr ? 1 : std::stoul(wanted)) << 20;
  constexpr uint32_t kItemBytes = 256 << 10;
  for (const auto& path : ptxkit::testing::corpus_files()) {
    const Bytes raw = ptxkit::testing::read_prefix(path, 16 << 20);
    std::vector<ZstdItem> items;
    for (size_t at = 0, total = 0; total < wanted_bytes; at = at + kItemBytes < raw.size() ? at + kItemBytes : 0) {
      const auto begin = raw.begin() + static_cast<ptrdiff_t>(at);
      items.push_back(
          {.bytes = Bytes(begin, begin + static_cast<ptrdiff_t>(std::min<size_t>(kItemBytes, raw.size() - at)))});
      total += items.back().bytes.size();
    }
    for (const bool is_high : {false, true}) {
      DeviceZstdMachine machine;
      const ZstdFrames made = make_zstd_frames(machine, items, kItemBytes, is_high);
      size_t raw_bytes = 0, coded_bytes = 0;
      for (size_t i = 0; i < items.size(); ++i) {
        raw_bytes += items[i].bytes.size();
        coded_bytes += made.frames[i].size();
      }
      for (size_t i = 0; i < std::min<size_t>(items.size(), 4); ++i) {
        EXPECT_TRUE(made.frames[i] ==
                    zstd_frame_reference(items[i].bytes, is_high ? kHighVariant : kChunkVariant, false))
            << path.filename() << ", item " << i;
      }
      std::cout << path.filename().string() << ", ratio "
                << static_cast<double>(raw_bytes) / static_cast<double>(coded_bytes);
      machine.print_rates(raw_bytes);
    }
  }
}

}  // namespace
}  // namespace ptxkit::kernels
