// The markers of the debug builds, read after a run: the steps of each warp, in order. The same run with the release
// build has no buffer to write to (its PTX is golden).
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"
#include "kernels/abi.hpp"
#include "kernels/lz4/lz4_format.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::kernel_image;
using ptxkit::testing::Ran;
using ::testing::ElementsAre;
using ::testing::SizeIs;

using Record = std::pair<Mark, uint64_t>;
constexpr auto kDone = static_cast<uint64_t>(Lz4Status::ok);

// The records of each warp of the grid, in the buffer's order.
std::map<uint32_t, std::vector<Record>> marks_by_warp(const Ran& ran) {
  EXPECT_EQ(ran.report, "");
  std::map<uint32_t, std::vector<Record>> warps;
  for (const auto& record : ran.marks) {
    EXPECT_EQ(record.thread % 32, 0u) << "lane 0 sets the marks of its warp";
    warps[record.thread / 32].emplace_back(record.mark, record.value);
  }
  return warps;
}

TEST(DebugMarks, OfTheCompressor) {
  const std::vector<Bytes> items = {Bytes(40, 'A'), Bytes(64, 0), Bytes(5000, 1), ptxkit::testing::random_bytes(70, 1)};
  const auto warps = marks_by_warp(
      ptxkit::testing::emulate_compress(kernel_image(kLz4CompressPage, "debug").ptx, kPageVariant, items));
  ASSERT_THAT(warps, SizeIs(4));
  // One window; the run after its first byte, four bytes of output; the last literals.
  EXPECT_THAT(warps.at(0), ElementsAre(Record{Mark::item, 40}, Record{Mark::parse, 0}, Record{Mark::emit, 0},
                                       Record{Mark::emit, 5}, Record{Mark::status, 0}));
  EXPECT_THAT(warps.at(1), ElementsAre(Record{Mark::item, 64}, Record{Mark::status, 2}));
  EXPECT_THAT(warps.at(2), ElementsAre(Record{Mark::item, 5000}, Record{Mark::status, 3}));
  EXPECT_THAT(warps.at(3), ElementsAre(Record{Mark::item, 70}, Record{Mark::parse, 0}, Record{Mark::parse, 32},
                                       Record{Mark::emit, 0}, Record{Mark::status, 1}));
}

TEST(DebugMarks, OfTheChunkCompressors) {
  for (const auto* variant : {&kChunkVariant, &kHighVariant}) {
    const auto warps = marks_by_warp(ptxkit::testing::emulate_compress(kernel_image(variant->name, "debug").ptx,
                                                                       *variant, {Bytes(40, 'A'), Bytes(9, 0)}));
    ASSERT_THAT(warps, SizeIs(2));
    EXPECT_THAT(warps.at(0), ElementsAre(Record{Mark::item, 40}, Record{Mark::parse, 0}, Record{Mark::emit, 0},
                                         Record{Mark::emit, 5}, Record{Mark::status, 0}));
    const uint32_t second = kLz4CompressChunkShape.block_threads / 32;  // the first warp of the second CTA
    EXPECT_THAT(warps.at(second), ElementsAre(Record{Mark::item, 9}, Record{Mark::status, 2}));
  }
}

TEST(DebugMarks, OfTheDecompressor) {
  const Bytes forty_a = {0x1f, 'A', 1, 0, 15, 0x50, 'A', 'A', 'A', 'A', 'A'};
  const auto warps = marks_by_warp(ptxkit::testing::emulate_decompress(kernel_image(kLz4Decompress, "debug").ptx,
                                                                       {{forty_a, 40}, {{0x10, 'a', 0, 0, 0x00}, 8}}));
  ASSERT_THAT(warps, SizeIs(2));
  // A batch of one sequence, then the last sequence alone; a malformed sequence alone, whose literal is written.
  EXPECT_THAT(warps.at(0), ElementsAre(Record{Mark::item, 11}, Record{Mark::parse, 0}, Record{Mark::emit, 0},
                                       Record{Mark::emit, 35}, Record{Mark::status, kDone}));
  EXPECT_THAT(warps.at(1), ElementsAre(Record{Mark::item, 5}, Record{Mark::parse, 0}, Record{Mark::emit, 0},
                                       Record{Mark::status, static_cast<uint64_t>(Lz4Status::offset_zero)}));
}

TEST(DebugMarks, OfZeroPage) {
  const auto warps = marks_by_warp(
      ptxkit::testing::emulate_zero_page(kernel_image(kZeroPage, "debug").ptx, {Bytes(100, 0), Bytes(30, 1)}));
  ASSERT_THAT(warps, SizeIs(2));
  EXPECT_THAT(warps.at(0), ElementsAre(Record{Mark::item, 100}, Record{Mark::status, 2}));
  EXPECT_THAT(warps.at(1), ElementsAre(Record{Mark::item, 30}, Record{Mark::status, 0}));
}

}  // namespace
}  // namespace ptxkit::kernels
