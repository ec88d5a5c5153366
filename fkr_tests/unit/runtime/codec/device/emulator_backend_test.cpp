// Runs the kernels' PTX through the batch API: the emulator backend writes the same bytes as the cpu backend's
// reproducible encoder, and a fault in a kernel becomes an error that tells what happened and where.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/frames.hpp"
#include "fkr_tests/cases/recording_machine.hpp"
#include "kernels/images.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/device/emulator_machine.hpp"
#include "runtime/codec/device/kernel_backend.hpp"
#include "runtime/codec/device/machine.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::codec {
namespace {

using ::testing::HasSubstr;
using ByteVector = std::vector<uint8_t>;

class EmulatorBackend : public ::testing::Test {
 protected:
  std::unique_ptr<Backend> emulator(FindImage find_image = kernels::find_kernel_image) {
    BackendRequest request;
    request.name = "emulator";
    request.find_image = std::move(find_image);
    return select_backend(request, executor_).value();
  }

  Executor executor_{2};
  std::unique_ptr<Backend> cpu_ = make_cpu_backend(executor_);
};

TEST_F(EmulatorBackend, GivesTheBytesOfTheCpu) {
  const auto backend = emulator();
  EXPECT_EQ(backend->name(), "emulator");
  for (const size_t size : {0u, 1u, 100u, 4096u, 4097u, 70000u, 200001u}) {
    ByteVector raw = testing::matchable_bytes(size / 2, 1);
    raw.resize(size - size / 4);  // the middle part is zeros
    const ByteVector noise = testing::random_bytes(size / 4, 2);
    raw.insert(raw.end(), noise.begin(), noise.end());
    for (const int size_id : {4, 5}) {
      const auto frame = testing::compress_frame(*backend, raw, size_id);
      ASSERT_TRUE(frame.has_value()) << frame.error().message();
      EXPECT_EQ(*frame, testing::compress_frame(*cpu_, raw, size_id).value()) << size;
      EXPECT_EQ(testing::decompress_frame(*backend, *frame).value(), raw) << size;
    }
  }
}

// The bytes between the blocks are not copied up: the kernel must not read them.
TEST_F(EmulatorBackend, BlocksInSlotsAreDecodedFromThere) {
  constexpr size_t kItem = 20'000, kSlot = 20'100, kItems = 6;
  const auto backend = emulator();
  HostMemory slots = backend->host_memory(kItems * kSlot).value(), room = backend->host_memory(kItems * kItem).value();
  const ByteVector raw = testing::matchable_bytes(kItems * kItem, 3);
  std::vector<CompressItem> there(kItems);
  for (size_t i = 0; i < kItems; ++i) {
    there[i].raw = std::span(raw).subspan(i * kItem, kItem);
    there[i].output = slots.bytes().subspan(i * kSlot, kItem);
  }
  ASSERT_TRUE(cpu_->compress(there, Encoder::reproducible));
  std::vector<DecompressItem> back(kItems);
  for (size_t i = 0; i < kItems; ++i) {
    ASSERT_LT(there[i].compressed_bytes, kItem * 3 / 4);
    back[i].block = there[i].output.first(there[i].compressed_bytes);
    back[i].output = room.bytes().subspan(i * kItem, kItem);
  }
  const auto done = backend->decompress(back);
  ASSERT_TRUE(done.has_value()) << done.error().message();
  EXPECT_TRUE(std::ranges::equal(room.bytes(), raw));
}

TEST_F(EmulatorBackend, OutputsInManyRunsAreWrittenByAKernel) {
  constexpr size_t kItem = 3000, kItems = 6;
  const auto backend = emulator();
  HostMemory room = backend->host_memory(2 * kItems * kItem).value();
  std::ranges::fill(room.bytes(), uint8_t{0x77});
  const ByteVector raw = testing::matchable_bytes(kItems * kItem, 3);
  ByteVector expected(room.bytes().begin(), room.bytes().end()), packed(kItems * kItem);
  std::vector<CompressItem> there(kItems);
  std::vector<DecompressItem> back(kItems);
  for (size_t i = 0; i < kItems; ++i) {
    there[i].raw = std::span(raw).subspan(i * kItem, kItem);
    there[i].output = std::span(packed).subspan(i * kItem, kItem);
    std::ranges::copy(there[i].raw, expected.begin() + static_cast<ptrdiff_t>(i * 3 / 2 * kItem));
  }
  ASSERT_TRUE(cpu_->compress(there, Encoder::reproducible));
  for (size_t i = 0; i < kItems; ++i) {
    back[i].block = there[i].output.first(there[i].compressed_bytes);
    back[i].output = room.bytes().subspan(i * 3 / 2 * kItem, kItem);
  }
  const auto done = backend->decompress(back);
  ASSERT_TRUE(done.has_value()) << done.error().message();
  EXPECT_TRUE(std::ranges::equal(room.bytes(), expected));
}

// The bytes between the blocks are not copied up: copy_items must not read them.
TEST_F(EmulatorBackend, BlocksInManyRunsAreReadByAKernel) {
  constexpr size_t kItem = 3000, kItems = 6;
  const auto backend = emulator();
  HostMemory slots = backend->host_memory(2 * kItems * kItem).value(),
             room = backend->host_memory(kItems * kItem).value();
  const ByteVector raw = testing::matchable_bytes(kItems * kItem, 3);
  std::vector<CompressItem> there(kItems);
  std::vector<DecompressItem> back(kItems);
  for (size_t i = 0; i < kItems; ++i) {
    there[i].raw = std::span(raw).subspan(i * kItem, kItem);
    there[i].output = slots.bytes().subspan(i * 3 / 2 * kItem + i * i % 5 * 16, kItem);
    back[i].output = room.bytes().subspan(i * kItem, kItem);
  }
  ASSERT_TRUE(cpu_->compress(there, Encoder::reproducible));
  for (size_t i = 0; i < kItems; ++i) back[i].block = there[i].output.first(there[i].compressed_bytes);
  const auto done = backend->decompress(back);
  ASSERT_TRUE(done.has_value()) << done.error().message();
  EXPECT_TRUE(std::ranges::equal(room.bytes(), raw));
}

TEST_F(EmulatorBackend, TheFirst256KiBOfEveryCorpusFile) {
  PTXKIT_REQUIRE_CORPUS();
  const auto backend = emulator();
  for (const auto& path : testing::corpus_files()) {
    const ByteVector raw = testing::read_prefix(path, 256u << 10);
    const auto frame = testing::compress_frame(*backend, raw);
    ASSERT_TRUE(frame.has_value()) << path << ": " << frame.error().message();
    EXPECT_TRUE(*frame == testing::compress_frame(*cpu_, raw).value()) << path;
    EXPECT_TRUE(testing::decompress_frame(*backend, *frame).value() == raw) << path;
    EXPECT_TRUE(testing::decode_with_liblz4(*frame, raw.size()) == raw) << path;
  }
}

// A single launch, several slices, and a CTA that is not full.
TEST_F(EmulatorBackend, AllocatesWhatTheKernelsDeclare) {
  for (const size_t item_count : {4u, 130u, 3u}) {
    testing::expect_declared_costs(
        [this](std::vector<testing::RecordedLaunch>& launches) {
          return make_kernel_backend(std::make_unique<testing::RecordingMachine>(
                                         make_emulator_machine(kernels::find_kernel_image, 2), launches),
                                     executor_);
        },
        9, 0, item_count);
  }
}

TEST_F(EmulatorBackend, BadBlocksHaveTheirStatus) {
  const ByteVector good = {0x10, 'x'}, offset_zero = {0x10, 'x', 0, 0, 0x50, 1, 2, 3, 4, 5}, cut = {0xf0};
  ByteVector rooms[3] = {ByteVector(9), ByteVector(99), ByteVector(99)};
  std::vector<DecompressItem> items(3);
  int i = 0;
  for (const ByteVector* block : {&good, &offset_zero, &cut}) {
    items[i].block = *block;
    items[i].output = rooms[i];
    ++i;
  }
  const auto done = emulator()->decompress(items);
  ASSERT_TRUE(done.has_value()) << done.error().message();
  EXPECT_EQ(items[0].status, ItemStatus::ok);
  EXPECT_EQ(rooms[0][0], 'x');
  EXPECT_EQ(items[1].status, ItemStatus::offset_zero);
  EXPECT_EQ(items[2].status, ItemStatus::input_overrun);
}

// Region indices: sizes and flags of a compression, sizes and statuses of a decompression.
TEST_F(EmulatorBackend, SizesThatCannotBeAreNotBelieved) {
  const auto lying_about = [&](size_t region) {
    return make_kernel_backend(
        std::make_unique<testing::LyingMachine>(make_emulator_machine(kernels::find_kernel_image, 2), region),
        executor_);
  };
  const ByteVector raw(100, 'x'), frame = testing::compress_frame(*cpu_, raw).value();
  for (const auto& [region, found] : {std::pair(3u, "flag 0 and 4294967295 bytes"), std::pair(4u, "flag 255 and")}) {
    const auto done = testing::compress_frame(*lying_about(region), raw);
    ASSERT_FALSE(done.has_value()) << region;
    EXPECT_THAT(done.error().message(), HasSubstr("the compressor reported " + std::string(found)));
    EXPECT_THAT(done.error().message(), HasSubstr("for a chunk of 100 bytes"));
    EXPECT_THAT(done.error().message(), HasSubstr("use --backend cpu, and report this as a bug"));
  }
  for (const auto& [region, found] : {std::pair(6u, "status 0 and 4294967295 bytes for room of"),
                                      std::pair(7u, "status 4294967295 and 100 bytes for room of")}) {
    const auto done = testing::decompress_frame(*lying_about(region), frame);
    ASSERT_FALSE(done.has_value()) << region;
    EXPECT_THAT(done.error().message(), HasSubstr("the decompressor reported " + std::string(found)));
  }
}

TEST_F(EmulatorBackend, AnImageWhoseTextChangedNeverRuns) {
  std::string text;
  kernels::KernelImage changed;
  const auto backend = emulator([&](std::string_view name, uint32_t major, uint32_t minor) {
    changed = *kernels::find_kernel_image(name, major, minor);
    text = std::string(changed.ptx) + "\n";
    changed.ptx = text;
    return &changed;
  });
  EXPECT_THAT(testing::compress_frame(*backend, ByteVector(100, 'x')).error().message(),
              HasSubstr("the verdict is for another text"));
  const auto none = emulator([](std::string_view, uint32_t, uint32_t) { return nullptr; });
  EXPECT_THAT(testing::compress_frame(*none, ByteVector(100, 'x')).error().message(),
              HasSubstr("there is no image of kernel lz4_compress_page for sm_90"));
}

}  // namespace
}  // namespace ptxkit::codec
