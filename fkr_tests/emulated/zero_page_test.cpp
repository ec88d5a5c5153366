#include <gtest/gtest.h>

#include "fkr_tests/emulated/kernel_harness.hpp"
#include "kernels/pages/zero_page_reference.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;

TEST(ZeroPage, TheOneByteThatIsNotZeroAtManyPlaces) {
  std::vector<Bytes> items = {{}, Bytes(4096, 0), Bytes(1, 0), Bytes(1, 1)};
  for (size_t at : {0, 1, 3, 4, 127, 128, 129, 2048, 4095}) {
    items.emplace_back(4096, 0);
    items.back()[at] = 0x80;
  }
  for (size_t size = 1; size < 137; size += size < 10 || size > 119 ? 1 : 11) {
    items.emplace_back(size, 0);
    items.emplace_back(size, 0);
    items.back().back() = 1;
  }
  for (const auto build : ptxkit::testing::kVariants) {
    const auto ran = ptxkit::testing::emulate_zero_page(ptxkit::testing::kernel_image(kZeroPage, build).ptx, items);
    ASSERT_EQ(ran.report, "") << build;
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_EQ(ran.codes[i], static_cast<uint32_t>(zero_page_reference(items[i]))) << "item " << i;
    }
  }
}

TEST(ZeroPage, BatchesThatDoNotFillACta) {
  for (uint32_t count : {1u, 3u, 4u, 5u, 127u}) {
    std::vector<Bytes> items;
    for (uint32_t i = 0; i < count; ++i) items.emplace_back(64, static_cast<uint8_t>(i % 3));
    const auto ran = ptxkit::testing::emulate_zero_page(ptxkit::testing::kernel_image(kZeroPage).ptx, items);
    ASSERT_EQ(ran.report, "");
    for (uint32_t i = 0; i < count; ++i) EXPECT_EQ(ran.codes[i], i % 3 == 0 ? 2u : 0u) << i << " of " << count;
  }
}

}  // namespace
}  // namespace ptxkit::kernels
