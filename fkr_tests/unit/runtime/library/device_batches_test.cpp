// DeviceBatches on the fake driver, which shows what is called, and on the driver that emulates the kernels.
#include "runtime/library/device_batches.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fkr_tests/cases/cuda/fake_gpu.hpp"
#include "fkr_tests/cases/device_batches.hpp"
#include "kernels/abi.hpp"
#include "runtime/driver/context.hpp"
#include "runtime/driver/driver.hpp"
#include "runtime/driver/graph.hpp"
#include "runtime/library/batch_launches.hpp"

namespace ptxkit::library {
namespace {

using ::testing::HasSubstr;

constexpr DeviceAddress kSomewhere = 4096;

BatchDecompression decompression(uint64_t item_count) {
  return {.inputs = kSomewhere,
          .input_bytes = kSomewhere,
          .output_capacities = kSomewhere,
          .output_bytes = kSomewhere,
          .item_count = item_count,
          .outputs = kSomewhere,
          .statuses = kSomewhere};
}

BatchCompression compression(uint64_t max_input_bytes, uint64_t item_count) {
  return {.inputs = kSomewhere,
          .input_bytes = kSomewhere,
          .max_input_bytes = max_input_bytes,
          .item_count = item_count,
          .temp = kSomewhere,
          .temp_bytes = DeviceBatches::requirements(max_input_bytes, item_count).value().temp_bytes,
          .outputs = kSomewhere,
          .output_bytes = kSomewhere,
          .statuses = kSomewhere};
}

class Batches : public testing::FakeGpu {};

// Pages need one launch, chunks two, several chunks an item four; temporary memory is a slot and a record a chunk.
TEST_F(Batches, WhatACompressionTakes) {
  const auto batches = DeviceBatches::open(0, FAKE_CUDA).value();
  for (const auto& [bytes, launches, temp_bytes] :
       {std::tuple(uint64_t{0}, 1, size_t{0}), std::tuple(uint64_t{4096}, 1, size_t{0}),
        std::tuple(uint64_t{4097}, 2, size_t{0}), std::tuple(uint64_t{65'536}, 2, size_t{0}),
        std::tuple(uint64_t{65'537}, 4, size_t{7 * 2 * (65'536 + 32)}),
        std::tuple(uint64_t{16} << 20, 4, size_t{7 * 256 * (65'536 + 32)})}) {
    state_.calls.clear();
    ASSERT_TRUE(batches.compress(compression(bytes, 7), nullptr));
    EXPECT_EQ(state_.calls["cuLaunchKernel"], launches) << bytes;
    const auto needed = DeviceBatches::requirements(bytes, 7).value();
    EXPECT_EQ(needed.temp_bytes, temp_bytes) << bytes;
    EXPECT_EQ(needed.output_bytes_bound, bytes + bytes / 255 + 16);
    EXPECT_EQ(needed.input_alignment, 16u);
    EXPECT_EQ(needed.output_alignment, 1u);
    EXPECT_EQ(needed.temp_alignment, 16u);
  }
}

// Framings of blocks put every chunk into a slot, which is no larger than an item, and take three launches back.
TEST_F(Batches, WhatFramingsOfBlocksTake) {
  const auto batches = DeviceBatches::open(0, FAKE_CUDA).value();
  for (const auto framing : {Framing::frame, Framing::hdf5}) {
    const size_t around = framing == Framing::frame ? 19 : 12;
    for (const auto& [bytes, launches, chunks, slot] :
         {std::tuple(uint64_t{0}, 3, size_t{1}, size_t{0}), std::tuple(uint64_t{100}, 3, size_t{1}, size_t{112}),
          std::tuple(uint64_t{4097}, 4, size_t{1}, size_t{4112}),
          std::tuple(uint64_t{65'537}, 4, size_t{2}, size_t{65'536})}) {
      const auto needed = DeviceBatches::requirements(bytes, 7, framing).value();
      EXPECT_EQ(needed.temp_bytes, 7 * chunks * (slot + 32)) << bytes;
      const size_t blocks = bytes == 0 ? 0 : chunks;
      EXPECT_EQ(needed.output_bytes_bound, bytes + 4 * blocks + around) << bytes;
      EXPECT_EQ(needed.decompress_temp_bytes, 7 * (24 + 12 * blocks)) << bytes;
      BatchCompression there = compression(bytes, 7);
      there.framing = framing;
      there.temp_bytes = needed.temp_bytes;
      state_.calls.clear();
      ASSERT_TRUE(batches.compress(there, nullptr));
      EXPECT_EQ(state_.calls["cuLaunchKernel"], launches) << bytes;
      BatchDecompression back = decompression(7);
      back.framing = framing;
      back.temp = kSomewhere;
      back.temp_bytes = needed.decompress_temp_bytes;
      state_.calls.clear();
      ASSERT_TRUE(batches.decompress(back, nullptr));
      EXPECT_EQ(state_.calls, (std::map<std::string, int>{{"cuCtxSetCurrent", blocks == 0 ? 2 : 3},
                                                          {"cuLaunchKernel", blocks == 0 ? 2 : 3}}));
    }
  }
}

// The fake GPU has four multiprocessors: 224 pages fill it.
TEST_F(Batches, FewPagesGoToTheKernelOfChunksUnlessBytesMatter) {
  for (const auto& [bytes, count, few_pages, kernel] : {std::tuple(4096, 223, 224, kernels::kLz4BatchCompressChunk),
                                                        std::tuple(4096, 224, 224, kernels::kLz4BatchCompressPage),
                                                        std::tuple(4096, 1, 0, kernels::kLz4BatchCompressPage),
                                                        std::tuple(4097, 1, 224, kernels::kLz4BatchCompressPage)}) {
    const auto launches = launches_of(compression(static_cast<uint64_t>(bytes), static_cast<uint64_t>(count)),
                                      static_cast<uint64_t>(few_pages))
                              .value();
    EXPECT_EQ(launches[0].kernel, kernel) << bytes << " " << count;
    EXPECT_EQ(launches.size(), bytes == 4096 ? 1u : 2u);
  }
}

// What needs temporary memory of several times its raw bytes is encoded in rounds of as many items as that holds.
TEST_F(Batches, ZstandardAndDeflateAreEncodedInRounds) {
  for (const auto& [coding, framing, kernels_of_round] :
       {std::tuple(Coding::zstd, Framing::frame, 7), std::tuple(Coding::gzip, Framing::frame, 2)}) {
    for (const auto& [bytes, count, rounds] : {std::tuple(65'536, 1, 1), std::tuple(65'536, 4096, 1),
                                               std::tuple(65'536, 4097, 2), std::tuple(1000, 10'000, 3)}) {
      const auto most = static_cast<uint64_t>(bytes), items = static_cast<uint64_t>(count);
      BatchCompression batch = compression(most, items);
      batch.coding = coding;
      batch.framing = framing;
      batch.temp_bytes = DeviceBatches::requirements(most, items, framing, coding).value().temp_bytes;
      const auto launches = launches_of(batch).value();
      EXPECT_EQ(launches.size(), static_cast<size_t>(rounds * kernels_of_round)) << bytes << " " << count;
      const auto last_count = launches.back().arguments.back().value;
      EXPECT_EQ(last_count, items - 4096 * static_cast<uint64_t>(rounds - 1));
      const uint64_t first = 4096 * static_cast<uint64_t>(rounds - 1);
      for (const size_t array : {0u, 1u, 2u, 3u})
        EXPECT_EQ(launches.back().arguments[array].value, kSomewhere + 8 * first);
      EXPECT_EQ(launches.back().arguments[4].value, kSomewhere + 4 * first);  // statuses
      --batch.temp_bytes;
      EXPECT_FALSE(launches_of(batch)) << bytes << " " << count;
    }
  }
  EXPECT_EQ(DeviceBatches::requirements(65'537, 1, Framing::frame, Coding::gzip).value().output_bytes_bound, 0u);
  BatchCompression batch = compression(65'537, 1);
  batch.coding = Coding::gzip;
  batch.framing = Framing::frame;
  EXPECT_THAT(launches_of(batch).error().message(), HasSubstr("expected at most 65536 of Deflate, found 65537"));
  batch.framing = Framing::raw;
  EXPECT_THAT(launches_of(batch).error().message(), HasSubstr("gzip and zlib have FRAME alone"));
}

TEST_F(Batches, ADeviceWithoutAnImageIsRefused) {
  state_.major = 5;
  const auto batches = DeviceBatches::open(0, FAKE_CUDA);
  ASSERT_FALSE(batches.has_value());
  EXPECT_THAT(batches.error().message(), HasSubstr("there is no image of kernel lz4_batch_compress_page for sm_50"));
  EXPECT_THAT(batches.error().message(), HasSubstr("Fake GPU"));
}

TEST_F(Batches, CompressionsThatCannotBeRightAreRefused) {
  const auto batches = DeviceBatches::open(0, FAKE_CUDA).value();
  const auto error_of = [&](const std::function<void(BatchCompression&)>& change) {
    BatchCompression batch = compression(70'000, 3);
    change(batch);
    state_.calls.clear();
    const auto done = batches.compress(batch, nullptr);
    EXPECT_EQ(state_.calls["cuLaunchKernel"], done ? 4 : 0);
    return done ? std::string() : done.error().message();
  };
  EXPECT_EQ(error_of([](auto&) {}), "");
  EXPECT_EQ(error_of([](auto& batch) { batch.statuses = 0; }), "");
  EXPECT_THAT(error_of([](auto& batch) { batch.output_bytes = 0; }), HasSubstr("output_bytes: expected an array"));
  EXPECT_THAT(error_of([](auto& batch) { --batch.temp_bytes; }),
              HasSubstr("temp: expected 393408 bytes, found 393407 at 0x1000"));
  EXPECT_THAT(error_of([](auto& batch) { batch.temp = 0; }), HasSubstr("temp: expected 393408 bytes"));
  EXPECT_THAT(error_of([](auto& batch) { batch.temp = 4104; }),
              HasSubstr("temp: expected an address aligned to 16 bytes, found 0x1008"));
  EXPECT_THAT(error_of([](auto& batch) { batch.max_input_bytes = 0x7E000001; }),
              HasSubstr("max_input_bytes: expected at most 2113929216, found 2113929217"));
  EXPECT_THAT(error_of([](auto& batch) { batch.item_count = 1u << 31; }), HasSubstr("item_count: expected at most"));
  EXPECT_THAT(error_of([](auto& batch) { batch.item_count = 0x7FFFFFFF; }),
              HasSubstr("expected at most 2147483647 chunks of 65536 bytes, found 2147483647 items of 2 chunks"));
  EXPECT_FALSE(DeviceBatches::requirements(0x7E000001, 1));
  EXPECT_TRUE(DeviceBatches::requirements(0x7E000000, 1));
}

TEST_F(Batches, NothingIsCalledButTheLaunchOnTheCallersStream) {
  const auto batches = DeviceBatches::open(0, FAKE_CUDA).value();
  const driver::ContextPointer here = context();
  const driver::Stream stream = driver::Stream::create(here).value();
  state_.calls.clear();
  ASSERT_TRUE(batches.decompress(decompression(5), stream.handle()));
  EXPECT_EQ(state_.calls,
            (std::map<std::string, int>{{"cuCtxSetCurrent", 2}, {"cuStreamGetCtx", 1}, {"cuLaunchKernel", 1}}));
  EXPECT_EQ(state_.streams_of["cuLaunchKernel"], std::set<void*>{stream.handle()});
}

TEST_F(Batches, SizesAreOneLaunchAndCheckedLikeTheOthers) {
  const auto batches = DeviceBatches::open(0, FAKE_CUDA).value();
  const BatchSizes good = {
      .inputs = kSomewhere, .input_bytes = kSomewhere, .item_count = 5, .output_bytes = kSomewhere};
  state_.calls.clear();
  ASSERT_TRUE(batches.decompressed_sizes(good, nullptr));
  EXPECT_EQ(state_.calls, (std::map<std::string, int>{{"cuCtxSetCurrent", 1}, {"cuLaunchKernel", 1}}));
  ASSERT_TRUE(batches.decompressed_sizes({}, nullptr));
  EXPECT_EQ(state_.calls["cuLaunchKernel"], 1);
  BatchSizes without = good;
  without.output_bytes = 0;
  EXPECT_THAT(batches.decompressed_sizes(without, nullptr).error().message(),
              HasSubstr("output_bytes: expected an array"));
}

TEST_F(Batches, TheDefaultStreamsAreTaken) {
  const auto batches = DeviceBatches::open(0, FAKE_CUDA).value();
  for (const uintptr_t number : {0, 1, 2}) {
    auto* const handle = reinterpret_cast<StreamHandle>(number);
    ASSERT_TRUE(batches.decompress(decompression(1), handle));
    EXPECT_TRUE(state_.streams_of["cuLaunchKernel"].contains(handle));
  }
}

TEST_F(Batches, AStreamThatIsCapturedTakesThem) {
  const auto batches = DeviceBatches::open(0, FAKE_CUDA).value();
  const driver::ContextPointer here = context();
  const driver::Stream stream = driver::Stream::create(here).value();
  ASSERT_TRUE(driver::Graph::begin(stream));
  BatchDecompression of_blocks = decompression(5);
  of_blocks.framing = Framing::frame;
  of_blocks.temp = kSomewhere;
  of_blocks.temp_bytes = 1000;
  for (const auto& batch : {decompression(5), of_blocks}) {
    const auto done = batches.decompress(batch, stream.handle());
    ASSERT_TRUE(done) << done.error().message();
  }
  const auto graph = driver::Graph::end(here, stream, std::nullopt);
  ASSERT_TRUE(graph) << graph.error().message();
  EXPECT_TRUE(graph->launch(stream));
  EXPECT_TRUE(stream.wait());
}

TEST_F(Batches, AStreamOfAnotherDeviceIsRefused) {
  state_.device_count = 2;
  const auto batches = DeviceBatches::open(0, FAKE_CUDA).value();
  const auto other = driver::Context::create(driver::Driver::open(FAKE_CUDA).value(), 1).value();
  const driver::Stream stream = driver::Stream::create(other).value();
  const auto done = batches.decompress(decompression(1), stream.handle());
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("expected a stream of device 0, found one of another context"));
  EXPECT_EQ(state_.calls["cuLaunchKernel"], 0);
}

TEST_F(Batches, WithoutItemsNothingIsLaunched) {
  const auto batches = DeviceBatches::open(0, FAKE_CUDA).value();
  ASSERT_TRUE(batches.decompress({}, nullptr));
  EXPECT_EQ(state_.calls["cuLaunchKernel"], 0);
}

TEST_F(Batches, ArgumentsThatCannotBeRightAreRefused) {
  const auto batches = DeviceBatches::open(0, FAKE_CUDA).value();
  const auto error_of = [&](const std::function<void(BatchDecompression&)>& change) {
    BatchDecompression batch = decompression(1);
    change(batch);
    const auto done = batches.decompress(batch, nullptr);
    return done ? std::string() : done.error().message();
  };
  EXPECT_EQ(error_of([](auto&) {}), "");
  EXPECT_EQ(error_of([](auto& batch) { batch.output_bytes = batch.statuses = 0; }), "");
  EXPECT_THAT(error_of([](auto& batch) { batch.inputs = 0; }),
              HasSubstr("inputs: expected an array in device memory, found null"));
  EXPECT_THAT(error_of([](auto& batch) { batch.input_bytes = 0; }), HasSubstr("input_bytes: expected an array"));
  EXPECT_THAT(error_of([](auto& batch) { batch.outputs = 0; }), HasSubstr("outputs: expected an array"));
  EXPECT_THAT(error_of([](auto& batch) { batch.output_capacities = 0; }),
              HasSubstr("output_capacities: expected an array"));
  EXPECT_THAT(error_of([](auto& batch) { batch.inputs = 4100; }),
              HasSubstr("inputs: expected an address aligned to 8 bytes, found 0x1004"));
  EXPECT_THAT(error_of([](auto& batch) { batch.statuses = 4098; }),
              HasSubstr("statuses: expected an address aligned to 4 bytes, found 0x1002"));
  EXPECT_THAT(error_of([](auto& batch) { batch.item_count = uint64_t{1} << 31; }),
              HasSubstr("item_count: expected at most 2147483647, found 2147483648"));
  EXPECT_THAT(error_of([](auto& batch) { batch.framing = static_cast<Framing>(77); }), HasSubstr("found 77"));
  EXPECT_THAT(DeviceBatches::open(3, FAKE_CUDA).error().message(), HasSubstr("there is no device 3"));
}

TEST(EmulatedBatches, ItemsComeBack) {
  const auto opened = DeviceBatches::open(0, EMULATED_CUDA);
  ASSERT_TRUE(opened) << opened.error().message();
  const auto here = driver::Context::create(driver::Driver::open(EMULATED_CUDA).value(), 0).value();
  for (const Framing framing : {Framing::raw, Framing::numcodecs, Framing::frame, Framing::hdf5}) {
    testing::expect_items_come_back(*opened, here, {1, 100, 4095, 4096}, framing, nullptr);
    testing::expect_items_come_back(*opened, here, {1, 12, 13, 4098, 65'535, 65'536}, framing, nullptr);
    testing::expect_items_come_back(*opened, here, {5, 65'537, 140'000, 196'608}, framing, nullptr);
  }
}

}  // namespace
}  // namespace ptxkit::library
