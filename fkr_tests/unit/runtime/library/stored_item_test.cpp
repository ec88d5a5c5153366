// What a cache keeps of a page, and the way back: on the CPU with every encoder, and on the emulator.
#include "runtime/library/stored_item.hpp"

#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "kernels/images.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::library {
namespace {

using namespace codec;

using ByteVector = std::vector<uint8_t>;

class StoredItems : public ::testing::Test {
 protected:
  StoredItems() {
    BackendRequest request;
    request.name = "emulator";
    request.find_image = kernels::find_kernel_image;
    emulator_ = select_backend(request, executor_).value();
  }

  struct Kept {
    ChunkFlag flag;
    ByteVector stored;
  };

  static std::vector<Kept> compress(Backend& backend, Encoder encoder, const std::vector<ByteVector>& pages) {
    std::vector<ByteVector> rooms;
    std::vector<CompressItem> items(pages.size());
    for (const ByteVector& page : pages) rooms.emplace_back(page.size());
    for (size_t i = 0; i < pages.size(); ++i) {
      items[i].raw = pages[i];
      items[i].output = rooms[i];
    }
    const auto done = backend.compress(items, encoder);
    EXPECT_TRUE(done) << done.error().message();
    flag_filled_items(items);
    std::vector<Kept> kept;
    for (size_t i = 0; i < pages.size(); ++i) {
      EXPECT_EQ(items[i].status, ItemStatus::ok);
      rooms[i].resize(items[i].compressed_bytes);
      kept.push_back({items[i].flag, items[i].flag == ChunkFlag::incompressible ? pages[i] : rooms[i]});
    }
    return kept;
  }

  static ItemStatus restore_one(Backend& backend, ChunkFlag flag, const ByteVector& stored, ByteVector& output) {
    StoredItem item{.flag = flag, .stored = stored, .output = output};
    const auto done = restore({&item, 1}, [&](std::span<DecompressItem> blocks) { return backend.decompress(blocks); });
    EXPECT_TRUE(done) << done.error().message();
    return item.status;
  }

  static void round_trip(Backend& backend, Encoder encoder, const std::vector<ByteVector>& pages) {
    const auto kept = compress(backend, encoder, pages);
    std::vector<ByteVector> outputs;
    for (const ByteVector& page : pages) outputs.emplace_back(page.size(), 0xcb);
    std::vector<StoredItem> items;
    for (size_t i = 0; i < pages.size(); ++i)
      items.push_back({.flag = kept[i].flag, .stored = kept[i].stored, .output = outputs[i]});
    const auto done = restore(items, [&](std::span<DecompressItem> blocks) { return backend.decompress(blocks); });
    ASSERT_TRUE(done) << done.error().message();
    for (size_t i = 0; i < pages.size(); ++i) {
      EXPECT_EQ(items[i].status, ItemStatus::ok) << i;
      EXPECT_TRUE(outputs[i] == pages[i]) << i;
    }
  }

  Executor executor_{2};
  std::unique_ptr<Backend> cpu_ = make_cpu_backend(executor_), emulator_;
};

TEST_F(StoredItems, APageOfOneByteCostsThatByte) {
  ByteVector almost(4096, 'A');
  almost.back() = 'B';
  const std::vector<ByteVector> pages = {
      ByteVector(4096, 'A'),          ByteVector(4096), ByteVector(2, 0xff), {'A'}, {},
      testing::random_bytes(4096, 1), almost,           ByteVector(65536, 1)};
  const ChunkFlag expected[] = {ChunkFlag::filled,         ChunkFlag::zero,  ChunkFlag::filled,
                                ChunkFlag::incompressible, ChunkFlag::zero,  ChunkFlag::incompressible,
                                ChunkFlag::compressed,     ChunkFlag::filled};
  const auto check = [&](Backend& backend, Encoder encoder) {
    const auto kept = compress(backend, encoder, pages);
    for (size_t i = 0; i < pages.size(); ++i) {
      EXPECT_EQ(kept[i].flag, expected[i]) << i;
      if (kept[i].flag != ChunkFlag::filled) continue;
      EXPECT_EQ(kept[i].stored, ByteVector(1, pages[i][0])) << i;
    }
    round_trip(backend, encoder, pages);
  };
  for (const Encoder encoder : {Encoder::fast, Encoder::reproducible, Encoder::high}) check(*cpu_, encoder);
  for (const Encoder encoder : {Encoder::reproducible, Encoder::high}) check(*emulator_, encoder);
}

// No encoder makes such a block too long to be looked at.
TEST_F(StoredItems, EveryLengthOfOneByteIsFound) {
  std::vector<ByteVector> items;
  for (size_t size = 2; size < 700; ++size) items.emplace_back(size, static_cast<uint8_t>(1 + size % 255));
  for (const size_t size : {4095u, 4096u, 4097u, 8191u, 65535u, 65536u, 65537u, 200'000u, 4u << 20})
    items.emplace_back(size, 'x');
  for (const Encoder encoder : {Encoder::fast, Encoder::reproducible, Encoder::high}) {
    for (const Kept& kept : compress(*cpu_, encoder, items)) {
      EXPECT_EQ(kept.flag, ChunkFlag::filled);
      EXPECT_EQ(kept.stored.size(), 1u);
    }
  }
}

TEST_F(StoredItems, MixedBatchesComeBack) {
  std::vector<ByteVector> pages;
  for (uint32_t i = 0; i < 60; ++i) {
    const ByteVector kinds[] = {ByteVector(4096), ByteVector(4096, static_cast<uint8_t>(i)),
                                testing::matchable_bytes(4096, i), testing::random_bytes(4096, i)};
    pages.push_back(kinds[i % 4]);
  }
  round_trip(*cpu_, Encoder::fast, pages);
  round_trip(*emulator_, Encoder::reproducible, pages);
}

TEST_F(StoredItems, WrongItemsAreRefusedEachByItself) {
  const auto other = static_cast<ChunkFlag>(3);
  const struct {
    ChunkFlag flag;
    ByteVector stored;
    ItemStatus expected;
  } cases[] = {
      {ChunkFlag::filled, {}, ItemStatus::wrong_length},
      {ChunkFlag::filled, {1, 1}, ItemStatus::wrong_length},
      {ChunkFlag::filled, {0}, ItemStatus::ok},
      {ChunkFlag::zero, {0}, ItemStatus::wrong_length},
      {ChunkFlag::incompressible, {1, 2, 3}, ItemStatus::wrong_length},
      {ChunkFlag::incompressible, {1, 2, 3, 4, 5}, ItemStatus::wrong_length},
      {ChunkFlag::incompressible, {1, 2, 3, 4}, ItemStatus::ok},
      {ChunkFlag::compressed, {0x30, 1, 2, 3}, ItemStatus::wrong_length},
      {ChunkFlag::compressed, {0x50, 1, 2, 3, 4, 5}, ItemStatus::output_overrun},
      {ChunkFlag::compressed, {0x40, 1, 2}, ItemStatus::input_overrun},
      {ChunkFlag::compressed, {0x40, 1, 2, 3, 4}, ItemStatus::ok},
      {other, {}, ItemStatus::unknown_flag},
      {static_cast<ChunkFlag>(255), {1}, ItemStatus::unknown_flag},
  };
  for (Backend* backend : {cpu_.get(), emulator_.get()}) {
    for (const auto& each : cases) {
      ByteVector output(4, 0xcb);
      EXPECT_EQ(restore_one(*backend, each.flag, each.stored, output), each.expected)
          << static_cast<int>(each.flag) << " with " << each.stored.size();
    }
  }
  EXPECT_EQ(text(ItemStatus::unknown_flag), "the flag is none of 0, 1, 2 and 4");
}

}  // namespace
}  // namespace ptxkit::library
