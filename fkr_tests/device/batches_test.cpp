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
  const driver::ContextPointer& device = *testing::device();
  const driver::Stream stream = driver::Stream::create(device).value();
  for (const library::Framing framing : {library::Framing::raw, library::Framing::numcodecs}) {
    for (void* const handle : {static_cast<void*>(nullptr), static_cast<void*>(stream.handle())}) {
      testing::expect_items_come_back(*batches, device, {1, 100, 4095, 4096}, framing, handle);
      testing::expect_items_come_back(*batches, device, {1, 12, 13, 4098, 65'535, 65'536}, framing, handle);
      testing::expect_items_come_back(*batches, device, {5, 65'537, 140'000}, framing, handle);
    }
  }
}

}  // namespace
}  // namespace ptxkit
