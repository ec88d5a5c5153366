// The kernels on a GPU: the bytes, flags and statuses of the scalar references, for the corpus, for mixed pages and for
// damaged blocks.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/frames.hpp"
#include "fkr_tests/cases/recording_machine.hpp"
#include "fkr_tests/device/device.hpp"
#include "kernels/abi.hpp"
#include "kernels/images.hpp"
#include "kernels/lz4/lz4_decompress_reference.hpp"
#include "kernels/pages/zero_page_reference.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/device/cuda_machine.hpp"
#include "runtime/codec/device/kernel_backend.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/driver/context.hpp"
#include "runtime/driver/launch_contract.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

using ByteVector = std::vector<uint8_t>;
constexpr size_t kEmulatedBytes = 256u << 10;
constexpr size_t kWholeFile = size_t{1} << 30;

class DeviceCodec : public ::testing::Test {
 protected:
  void SetUp() override {
    PTXKIT_REQUIRE_DEVICE();
    auto cuda = backend("cuda");
    ASSERT_TRUE(cuda.has_value()) << cuda.error().message();
    cuda_ = std::move(*cuda);
  }
  Result<std::unique_ptr<Backend>> backend(const char* name) {
    BackendRequest request;
    request.name = name;
    const char* device = std::getenv("PTXKIT_DEVICE");
    request.devices = {device != nullptr ? std::atoi(device) : 0};
    request.find_image = kernels::find_kernel_image;
    return select_backend(request, executor_);
  }
  // One item for each page.
  static std::vector<CompressItem> items_of(const std::vector<ByteVector>& pages, std::vector<ByteVector>& rooms) {
    rooms.assign(pages.size(), {});
    std::vector<CompressItem> items(pages.size());
    for (size_t i = 0; i < pages.size(); ++i) {
      rooms[i].resize(pages[i].size());
      items[i].raw = pages[i];
      items[i].output = rooms[i];
    }
    return items;
  }

  Executor executor_;
  std::unique_ptr<Backend> cpu_ = make_cpu_backend(executor_);
  std::unique_ptr<Backend> cuda_;
};

TEST_F(DeviceCodec, EveryCorpusFileRoundTripsWithTheBytesOfTheCpu) {
  PTXKIT_REQUIRE_CORPUS();
  for (const auto& path : testing::corpus_files()) {
    const ByteVector raw = testing::read_prefix(path, kWholeFile);
    for (const int size_id : {4, 7}) {
      const auto frame = testing::compress_frame(*cuda_, raw, size_id);
      ASSERT_TRUE(frame.has_value()) << path << ": " << frame.error().message();
      EXPECT_TRUE(*frame == testing::compress_frame(*cpu_, raw, size_id).value()) << path;
      EXPECT_TRUE(testing::compress_frame(*cuda_, raw, size_id).value() == *frame) << path << ": two runs differ";
      const auto decoded = testing::decompress_frame(*cuda_, *frame);
      ASSERT_TRUE(decoded.has_value()) << path << ": " << decoded.error().message();
      EXPECT_TRUE(*decoded == raw) << path;
      EXPECT_TRUE(testing::decode_with_liblz4(*frame, raw.size()) == raw) << path << ": liblz4 reads another content";
      EXPECT_TRUE(testing::decompress_frame(*cpu_, *frame).value() == raw) << path;
      EXPECT_TRUE(testing::compress_frame(*cuda_, raw, size_id, Encoder::high).value() ==
                  testing::compress_frame(*cpu_, raw, size_id, Encoder::high).value())
          << path;
      // Blocks of another encoder.
      EXPECT_TRUE(testing::decompress_frame(*cuda_, testing::compress_frame(*cpu_, raw, size_id, Encoder::fast).value())
                      .value() == raw)
          << path;
    }
  }
}

TEST_F(DeviceCodec, TheEmulatorGivesTheSameBytes) {
  PTXKIT_REQUIRE_CORPUS();
  const auto emulator = backend("emulator");
  ASSERT_TRUE(emulator.has_value()) << emulator.error().message();
  for (const auto& path : testing::corpus_files()) {
    const ByteVector raw = testing::read_prefix(path, kEmulatedBytes);
    const auto frame = testing::compress_frame(**emulator, raw, 4);
    ASSERT_TRUE(frame.has_value()) << path << ": " << frame.error().message();
    EXPECT_TRUE(*frame == testing::compress_frame(*cuda_, raw, 4).value()) << path;
    EXPECT_TRUE(*frame == testing::compress_frame(*cpu_, raw, 4).value()) << path;
    EXPECT_TRUE(testing::decompress_frame(**emulator, *frame).value() == raw) << path;
  }
}

TEST_F(DeviceCodec, AllocatesWhatTheKernelsDeclare) {
  const driver::ContextPointer context = *testing::device();
  for (const size_t item_count : {4u, 3u, 2000u}) {
    testing::expect_declared_costs(
        [&](std::vector<testing::RecordedLaunch>& launches) -> std::unique_ptr<Backend> {
          auto machine = make_cuda_machine(context, kernels::find_kernel_image);
          if (!machine) return nullptr;
          return make_kernel_backend(std::make_unique<testing::RecordingMachine>(std::move(*machine), launches),
                                     executor_);
        },
        static_cast<uint32_t>(context->info().major), static_cast<uint32_t>(context->info().minor), item_count);
  }
}

TEST_F(DeviceCodec, GeneratedInputsOfAwkwardSizes) {
  for (const size_t size :
       {0u, 1u, 3u, 12u, 13u, 63u, 4095u, 4096u, 4097u, 65535u, 65536u, 65537u, 200001u, 5000003u}) {
    const auto seed = static_cast<uint32_t>(size);
    for (const ByteVector& raw : {testing::matchable_bytes(size, seed), testing::random_bytes(size, seed),
                                  testing::ramp_bytes(size), ByteVector(size)}) {
      for (const auto& [size_id, encoder] :
           {std::pair(4, Encoder::reproducible), std::pair(5, Encoder::reproducible), std::pair(4, Encoder::high)}) {
        const auto frame = testing::compress_frame(*cuda_, raw, size_id, encoder);
        ASSERT_TRUE(frame.has_value()) << size << ": " << frame.error().message();
        EXPECT_TRUE(*frame == testing::compress_frame(*cpu_, raw, size_id, encoder).value()) << size;
        EXPECT_TRUE(testing::decompress_frame(*cuda_, *frame).value() == raw) << size;
      }
    }
  }
}

TEST_F(DeviceCodec, AThousandMixedPages) {
  std::vector<ByteVector> pages;
  for (uint32_t i = 0; i < 1000; ++i) {
    const ByteVector kinds[] = {ByteVector(4096), testing::random_bytes(4096, i), testing::matchable_bytes(4096, i),
                                ByteVector(4096, 'A'), testing::ramp_bytes(4096)};
    pages.push_back(kinds[i % 5]);
  }
  pages.push_back(ByteVector(40, 'A'));
  std::vector<ByteVector> rooms, cpu_rooms;
  auto items = items_of(pages, rooms), cpu_items = items_of(pages, cpu_rooms);
  const auto done = cuda_->compress(items, Encoder::reproducible);
  ASSERT_TRUE(done.has_value()) << done.error().message();
  ASSERT_TRUE(cpu_->compress(cpu_items, Encoder::reproducible));
  const ChunkFlag expected[] = {ChunkFlag::zero, ChunkFlag::incompressible, ChunkFlag::compressed,
                                ChunkFlag::compressed, ChunkFlag::compressed};
  std::vector<DecompressItem> back;
  std::vector<ByteVector> decoded(pages.size());
  for (size_t i = 0; i < items.size(); ++i) {
    if (i < 1000) {
      EXPECT_EQ(items[i].flag, expected[i % 5]) << i;
    }
    EXPECT_EQ(items[i].flag, cpu_items[i].flag) << i;
    ASSERT_EQ(items[i].compressed_bytes, cpu_items[i].compressed_bytes) << i;
    EXPECT_LE(items[i].compressed_bytes, pages[i].size() + 16);
    if (items[i].flag != ChunkFlag::compressed) continue;
    const Bytes block = Bytes(rooms[i]).first(items[i].compressed_bytes);
    EXPECT_TRUE(std::equal(block.begin(), block.end(), cpu_rooms[i].begin())) << i;
    decoded[i].resize(pages[i].size());
    DecompressItem item;
    item.block = block;
    item.output = decoded[i];
    back.push_back(item);
  }
  EXPECT_EQ(items.back().flag, ChunkFlag::compressed) << "40 x 'A'";
  ASSERT_TRUE(cuda_->decompress(back));
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].flag == ChunkFlag::compressed) {
      EXPECT_TRUE(decoded[i] == pages[i]) << i;
    }
  }
}

TEST_F(DeviceCodec, DamagedBlocksHaveTheStatusOfTheReference) {
  std::vector<ByteVector> blocks, rooms;
  std::vector<DecompressItem> items;
  std::mt19937 random(1);
  for (uint32_t i = 0; i < 3000; ++i) {
    const ByteVector raw = testing::matchable_bytes(1 + random() % 6000, i);
    ByteVector room(raw.size());
    CompressItem item;
    item.raw = raw;
    item.output = room;
    ASSERT_TRUE(cpu_->compress({&item, 1}, i % 2 ? Encoder::fast : Encoder::reproducible));
    room.resize(item.compressed_bytes);
    if (item.flag != ChunkFlag::compressed) continue;
    for (auto change = random() % 5; change != 0; --change)
      room[random() % room.size()] = static_cast<uint8_t>(random());
    if (i % 7 == 0) room.resize(random() % room.size());
    blocks.push_back(room);
    rooms.emplace_back(raw.size() - (i % 11 == 0 ? raw.size() / 3 : 0));
  }
  std::map<ItemStatus, int> met;
  for (size_t i = 0; i < blocks.size(); ++i) {
    DecompressItem item;
    item.block = blocks[i];
    item.output = rooms[i];
    items.push_back(item);
  }
  const auto done = cuda_->decompress(items);
  ASSERT_TRUE(done.has_value()) << done.error().message();
  for (size_t i = 0; i < items.size(); ++i) {
    ByteVector expected(rooms[i].size());
    const auto reference = kernels::lz4_decompress_reference(blocks[i], expected);
    ASSERT_EQ(static_cast<int>(items[i].status), static_cast<int>(reference.status)) << i;
    ASSERT_EQ(items[i].raw_bytes, reference.size_bytes) << i;
    EXPECT_TRUE(std::equal(expected.begin(), expected.begin() + reference.size_bytes, rooms[i].begin())) << i;
    ++met[items[i].status];
  }
  EXPECT_GE(met.size(), 4u) << "the damage should provoke several statuses";
}

TEST_F(DeviceCodec, ZeroPagesAreFound) {
  const driver::ContextPointer context = *testing::device();
  const auto& info = context->info();
  const kernels::KernelImage* const image = kernels::find_kernel_image(kernels::kZeroPage, info.major, info.minor);
  ASSERT_NE(image, nullptr);
  auto kernel = driver::Kernel::load(context, *image);
  ASSERT_TRUE(kernel.has_value()) << kernel.error().message();
  constexpr uint32_t kCount = 1001, kStride = 4096;
  ByteVector raw(size_t{kCount} * kStride);
  std::vector<uint32_t> sizes(kCount);
  std::mt19937 random(3);
  for (uint32_t i = 0; i < kCount; ++i) {
    sizes[i] = i % 3 == 0 ? static_cast<uint32_t>(random() % (kStride + 1)) : kStride;
    // A byte that is not zero: in the page, or just after its end, where it must be ignored.
    if (i % 2 == 0 && sizes[i] != 0) raw[i * kStride + random() % sizes[i]] = 1;
    if (i % 2 == 1 && sizes[i] < kStride) raw[i * kStride + sizes[i]] = 1;
  }
  auto stream = driver::Stream::create(context).value();
  auto memory = driver::DeviceMemory::allocate(context, raw.size()).value();
  auto device_sizes = driver::DeviceMemory::allocate(context, kCount * 4).value();
  auto flags = driver::DeviceMemory::allocate(context, kCount).value();
  ASSERT_TRUE(memory.upload(raw, stream));
  ASSERT_TRUE(device_sizes.upload({reinterpret_cast<const uint8_t*>(sizes.data()), kCount * 4}, stream));
  ASSERT_TRUE(flags.fill(0xee, stream));
  using driver::LaunchArgument;
  const LaunchArgument arguments[] = {
      LaunchArgument::of(memory.as<uint8_t>()), LaunchArgument::of(device_sizes.as<uint32_t>()),
      LaunchArgument::of(flags.as<uint8_t>()), LaunchArgument::of(kStride / kernels::kStrideUnitBytes),
      LaunchArgument::of(kCount)};
  const auto launched = kernel->launch(stream, kernels::kZeroPageShape.grid_blocks(kCount),
                                       kernels::kZeroPageShape.block_threads, arguments);
  ASSERT_TRUE(launched.has_value()) << launched.error().message();
  ByteVector found(kCount);
  ASSERT_TRUE(flags.download(found, stream));
  ASSERT_TRUE(stream.wait());
  for (uint32_t i = 0; i < kCount; ++i) {
    const auto expected = kernels::zero_page_reference(Bytes(raw).subspan(size_t{i} * kStride, sizes[i]));
    EXPECT_EQ(found[i], static_cast<uint8_t>(expected)) << i;
  }
}

}  // namespace
}  // namespace ptxkit::codec
