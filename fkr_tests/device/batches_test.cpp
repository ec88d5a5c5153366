// Batches of items that lie anywhere, on a GPU.
#include <gtest/gtest.h>

#include "fkr_tests/cases/device_batches.hpp"
#include "fkr_tests/device/device.hpp"

namespace ptxkit {
namespace {

TEST(DeviceBatches, ItemsComeBack) {
  PTXKIT_REQUIRE_DEVICE();
  const auto batches = library::DeviceBatches::open();
  ASSERT_TRUE(batches) << batches.error().message();
  testing::expect_items_come_back(*batches, *testing::device(), {1, 100, 4096, 10'000});
}

}  // namespace
}  // namespace ptxkit
