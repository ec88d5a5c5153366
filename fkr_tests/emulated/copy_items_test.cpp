#include <numeric>

#include <gtest/gtest.h>

#include "fkr_tests/emulated/kernel_harness.hpp"
#include "kernels/pages/copy_items_reference.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::bytes_of;
using ptxkit::testing::KernelArgument;

TEST(CopyItems, OfEverySizeAtEveryOffsetAndNothingBetweenThem) {
  std::vector<uint64_t> offsets;
  std::vector<uint32_t> sizes;
  uint64_t end = 0;
  for (uint32_t offset = 0; offset < 16; ++offset) {
    for (const uint32_t size : {0u, 1u, 15u, 16u, 17u, 31u, 100u, 600u}) {
      offsets.push_back((end + 31) / 16 * 16 + offset);
      sizes.push_back(size);
      end = offsets.back() + size;
    }
  }
  Bytes src(end), expected(end, 0x5a);
  std::iota(src.begin(), src.end(), uint8_t{1});
  copy_items_reference(src.data(), offsets, sizes, expected.data());
  const auto count = static_cast<uint32_t>(sizes.size());
  for (const auto build : ptxkit::testing::kVariants) {
    // A warp an item, and several items a warp.
    for (const uint32_t ctas : {kCopyItemsShape.grid_blocks(count), 3u}) {
      const auto ran = ptxkit::testing::emulator_launch(build)(
          kCopyItems, ctas, kCopyItemsShape.block_threads,
          {KernelArgument::input(src), KernelArgument::input(bytes_of(offsets)), KernelArgument::input(bytes_of(sizes)),
           KernelArgument::input(Bytes(end, 0x5a)), KernelArgument::number(count)});
      ASSERT_EQ(ran.size(), 4u) << build;
      EXPECT_TRUE(ran[3] == expected) << build << ", " << ctas << " CTAs";
    }
  }
}

}  // namespace
}  // namespace ptxkit::kernels
