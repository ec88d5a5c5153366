// Batches of items that lie anywhere, on a GPU.
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/device_batches.hpp"
#include "fkr_tests/cases/frames.hpp"
#include "fkr_tests/device/device.hpp"
#include "fkr_tests/fuzz/stream_damage.hpp"
#include "kernels/abi.hpp"
#include "kernels/lz4/lz4_batch_reference.hpp"
#include "runtime/driver/context.hpp"
#include "runtime/library/device_batches.hpp"

namespace ptxkit {
namespace {

TEST(DeviceBatches, ItemsComeBack) {
  PTXKIT_REQUIRE_DEVICE();
  const auto batches = library::DeviceBatches::open();
  ASSERT_TRUE(batches) << batches.error().message();
  const driver::ContextPointer& device = *testing::device();
  const driver::Stream stream = driver::Stream::create(device).value();
  for (const library::Framing framing :
       {library::Framing::raw, library::Framing::numcodecs, library::Framing::frame, library::Framing::hdf5}) {
    for (void* const handle : {static_cast<void*>(nullptr), static_cast<void*>(stream.handle())}) {
      testing::expect_items_come_back(*batches, device, {1, 100, 4095, 4096}, framing, handle);
      testing::expect_items_come_back(*batches, device, {1, 12, 13, 4098, 65'535, 65'536}, framing, handle);
      testing::expect_items_come_back(*batches, device, {5, 65'537, 140'000}, framing, handle);
    }
  }
}

// Frames of liblz4 of every kind, half of them damaged: status and bytes are those of the reference.
TEST(DeviceBatches, DamagedFramesAreJudgedAsByTheReference) {
  PTXKIT_REQUIRE_DEVICE();
  const auto batches = library::DeviceBatches::open();
  ASSERT_TRUE(batches) << batches.error().message();
  testing::BatchMemory memory(*testing::device());
  constexpr size_t kItems = 500, kLargest = 200'000;  // within the emulated driver's limit of steps
  std::mt19937 random(1);
  std::vector<testing::Bytes> items, expected;
  std::vector<int32_t> statuses;
  std::vector<uint64_t> inputs, input_bytes, outputs, capacities, sizes;
  for (size_t i = 0; i < kItems; ++i) {
    const size_t raw_bytes = random() % (i % 100 == 0 ? kLargest : 2000);
    const testing::Bytes raw = i % 7 == 0 ? testing::random_bytes(raw_bytes, static_cast<uint32_t>(i))
                                          : testing::matchable_bytes(raw_bytes, static_cast<uint32_t>(i));
    LZ4F_preferences_t wanted = {};
    wanted.frameInfo.blockSizeID = static_cast<LZ4F_blockSizeID_t>(4 + random() % 4);
    wanted.frameInfo.blockMode = random() % 4 == 0 ? LZ4F_blockLinked : LZ4F_blockIndependent;
    wanted.frameInfo.contentChecksumFlag = static_cast<LZ4F_contentChecksum_t>(random() % 2);
    wanted.frameInfo.blockChecksumFlag = static_cast<LZ4F_blockChecksum_t>(random() % 2);
    wanted.frameInfo.contentSize = random() % 2 != 0 ? raw.size() : 0;
    testing::Bytes frame(LZ4F_compressFrameBound(raw.size(), &wanted));
    frame.resize(LZ4F_compressFrame(frame.data(), frame.size(), raw.data(), raw.size(), &wanted));
    if (i % 2 != 0) fuzz::damage(frame, random);
    items.push_back(frame);
    expected.emplace_back(raw.size() + random() % 3);
    const auto item = kernels::lz4_batch_framed_reference(items.back(), expected.back(), kernels::BatchFraming::frame);
    statuses.push_back(static_cast<int32_t>(item.status));
    sizes.push_back(item.size_bytes);
    capacities.push_back(expected.back().size());
    input_bytes.push_back(frame.size());
    frame.resize(frame.size() + 1);  // of an item that was cut to nothing, too
    inputs.push_back(memory.upload(frame));
    outputs.push_back(memory.upload(testing::Bytes(capacities.back() + 1)));
  }
  library::BatchDecompression batch;
  batch.inputs = memory.upload(inputs);
  batch.input_bytes = memory.upload(input_bytes);
  batch.output_capacities = memory.upload(capacities);
  batch.output_bytes = memory.upload(std::vector<uint64_t>(kItems));
  batch.item_count = kItems;
  batch.outputs = memory.upload(outputs);
  batch.framing = library::Framing::frame;
  batch.statuses = memory.upload(std::vector<int32_t>(kItems, -1));
  batch.temp_bytes =
      library::DeviceBatches::requirements(kLargest, kItems, library::Framing::frame).value().decompress_temp_bytes;
  batch.temp = memory.upload(testing::Bytes(batch.temp_bytes));
  ASSERT_TRUE(batches->decompress(batch, nullptr));
  ASSERT_EQ((*testing::device())->api().stream_synchronize(nullptr), 0);
  EXPECT_EQ(memory.download<int32_t>(batch.statuses, kItems), statuses);
  EXPECT_EQ(memory.download<uint64_t>(batch.output_bytes, kItems), sizes);
  for (size_t i = 0; i < kItems; ++i) {
    expected[i].resize(sizes[i]);
    if (sizes[i] != 0) {
      EXPECT_TRUE(memory.download<uint8_t>(outputs[i], sizes[i]) == expected[i]) << i;
    }
  }
}

}  // namespace
}  // namespace ptxkit
