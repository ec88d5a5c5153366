// Batches of items made into Zstandard frames by all kernels of the chain, one after the other in one device's memory:
// the bytes of zstd_frame_reference, which libzstd decodes.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fkr_tests/cases/zstd_chain.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"
#include "fkr_tests/emulated/zstd_machine.hpp"
#include "kernels/zstd/zstd_reference.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::EmulatedZstdMachine;
using ptxkit::testing::ZstdFrames;
using ptxkit::testing::ZstdItem;

void expect_frames(const std::vector<Bytes>& raws, uint32_t max_input_bytes, bool is_high, std::string_view build) {
  std::vector<ZstdItem> items;
  for (const Bytes& raw : raws) items.push_back({.bytes = raw});
  EmulatedZstdMachine machine(build);
  const ZstdFrames made = make_zstd_frames(machine, items, max_input_bytes, is_high);
  EXPECT_EQ(made.statuses, std::vector<uint32_t>(raws.size()));
  for (size_t i = 0; i < raws.size(); ++i) {
    const Bytes expected = zstd_frame_reference(raws[i], is_high ? kHighVariant : kChunkVariant, false);
    EXPECT_TRUE(made.frames[i] == expected)
        << "item " << i << " of " << raws[i].size() << " bytes: " << made.frames[i].size() << " bytes, "
        << expected.size() << " expected";
  }
}

TEST(ZstdBatch, BlocksOfEveryKind) {
  for (const bool is_high : {false, true})
    expect_frames(ptxkit::testing::zstd_blocks(20'000), 20'000, is_high, "release");
  expect_frames(ptxkit::testing::zstd_blocks(4000), 70'000, true, "debug");
}

TEST(ZstdBatch, ItemsOfSeveralBlocks) {
  const auto [items, largest] = ptxkit::testing::zstd_items_of_several_blocks();
  std::vector<Bytes> raws;
  for (const ZstdItem& item : items) raws.push_back(item.bytes);
  expect_frames(raws, largest, true, "release");
}

// More blocks than the lanes of the warp that plans them.
TEST(ZstdBatch, AnItemOfMoreBlocksThanLanes) {
  Bytes raw(33 * kZstdBlockBytes + 5, 'a');
  for (size_t i = 0; i < raw.size(); i += 5000) raw[i] = static_cast<uint8_t>(i / 5000);
  expect_frames({raw}, static_cast<uint32_t>(raw.size()), false, "release");
}

TEST(ZstdBatch, AnItemThatIsWrongAffectsNoOther) {
  const Bytes raw = ptxkit::testing::matchable_bytes(3000, 1);
  const std::vector<ZstdItem> items = {{.bytes = raw},
                                       {.bytes = raw, .claimed_bytes = 70'001},
                                       {.bytes = raw, .claimed_bytes = uint64_t{1} << 32 | 5},
                                       {.bytes = raw, .is_null = true},
                                       {.bytes = {}, .is_null = true},
                                       {.bytes = raw, .is_room_null = true},
                                       {.bytes = raw, .misalignment = 8},
                                       {.bytes = raw}};
  for (const auto build : ptxkit::testing::kVariants) {
    EmulatedZstdMachine machine(build);
    const ZstdFrames made = make_zstd_frames(machine, items, 70'000, false);
    std::vector<uint32_t> expected;
    for (const BatchStatus status :
         {BatchStatus::ok, BatchStatus::too_large, BatchStatus::too_large, BatchStatus::invalid_value, BatchStatus::ok,
          BatchStatus::invalid_value, BatchStatus::misaligned, BatchStatus::ok})
      expected.push_back(static_cast<uint32_t>(status));
    EXPECT_EQ(made.statuses, expected);
    const Bytes frame = zstd_frame_reference(raw, kChunkVariant, false);
    for (size_t i = 0; i < items.size(); ++i) {
      const bool is_good = i == 0 || i == 7;
      EXPECT_TRUE(made.frames[i] == (is_good  ? frame
                                     : i == 4 ? zstd_frame_reference({}, kChunkVariant, false)
                                              : Bytes()))
          << i;
    }
  }
}

}  // namespace
}  // namespace ptxkit::kernels
