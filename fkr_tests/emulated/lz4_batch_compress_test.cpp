// Batches of items compressed on the emulator with every check: the bytes of the reproducible encoder where it shrinks
// an item, one sequence of literals elsewhere, always a block that liblz4 takes.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <lz4.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"
#include "fkr_tests/emulated/lz4_batches.hpp"
#include "kernels/abi.hpp"
#include "kernels/lz4/lz4_batch_reference.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/library/device_batches.hpp"

namespace ptxkit::kernels {
namespace {

using library::Framing;
using ptxkit::testing::BatchCase;
using ptxkit::testing::BatchOptions;
using ptxkit::testing::BatchRan;
using ptxkit::testing::Bytes;
using ptxkit::testing::compress_batch;
using ptxkit::testing::matchable_bytes;
using ptxkit::testing::random_bytes;

constexpr auto kOk = static_cast<uint32_t>(BatchStatus::ok);
constexpr auto kInvalidValue = static_cast<uint32_t>(BatchStatus::invalid_value);
constexpr auto kMisaligned = static_cast<uint32_t>(BatchStatus::misaligned);
constexpr auto kTooLarge = static_cast<uint32_t>(BatchStatus::too_large);

// The block of the host's reproducible encoder; nothing if it does not shrink the item, or the item is zero.
Bytes block_of_the_host(const Bytes& raw) {
  static codec::Executor executor(1);
  static const auto backend = codec::make_cpu_backend(executor);
  Bytes room(raw.size());
  codec::CompressItem item;
  item.raw = raw;
  item.output = room;
  EXPECT_TRUE(backend->compress({&item, 1}, codec::Encoder::reproducible));
  if (item.flag != codec::ChunkFlag::compressed) return {};
  room.resize(item.compressed_bytes);
  return room;
}

Bytes decoded_by_liblz4(const Bytes& block, size_t raw_bytes) {
  Bytes raw(raw_bytes);
  const int size = LZ4_decompress_safe(reinterpret_cast<const char*>(block.data()), reinterpret_cast<char*>(raw.data()),
                                       static_cast<int>(block.size()), static_cast<int>(raw_bytes));
  EXPECT_EQ(size, static_cast<int>(raw_bytes));
  return raw;
}

BatchRan expect_blocks(const std::vector<Bytes>& raws, const BatchOptions& options = {}) {
  std::vector<BatchCase> items;
  for (const Bytes& raw : raws) items.push_back({.bytes = raw});
  BatchRan ran = compress_batch(items, options);
  EXPECT_EQ(ran.report, "");
  if (!ran.report.empty()) return ran;
  EXPECT_FALSE(ran.claims_too_much);
  EXPECT_EQ(ran.statuses, std::vector<uint32_t>(raws.size(), kOk));
  for (size_t i = 0; i < raws.size(); ++i) {
    SCOPED_TRACE("item " + std::to_string(i) + " of " + std::to_string(raws[i].size()) + " bytes");
    Bytes block = ran.outputs[i];
    if (options.framing == Framing::numcodecs) {
      uint32_t size = 0;
      if (block.size() < 4) {
        ADD_FAILURE() << "no size";
        continue;
      }
      std::memcpy(&size, block.data(), 4);
      EXPECT_EQ(size, raws[i].size());
      block.erase(block.begin(), block.begin() + 4);
    }
    EXPECT_TRUE(decoded_by_liblz4(block, raws[i].size()) == raws[i]);
    const Bytes expected = block_of_the_host(raws[i]);
    if (!expected.empty()) {
      EXPECT_TRUE(block == expected);
    }
    const bool is_zero = std::all_of(raws[i].begin(), raws[i].end(), [](uint8_t byte) { return byte == 0; });
    const size_t as_literals = raws[i].size() + 1 + (raws[i].size() < 15 ? 0 : (raws[i].size() - 15) / 255 + 1);
    if (expected.empty() && !(is_zero && raws[i].size() > 12)) {
      EXPECT_EQ(block.size(), as_literals);
    }
    if (is_zero && raws[i].size() > 24) {
      EXPECT_LE(block.size(), raws[i].size() / 255 + 12 * (raws[i].size() / 65'536 + 1));
    }
  }
  return ran;
}

std::vector<Bytes> of_each_kind(size_t size, uint32_t seed) {
  Bytes almost_zero(size);
  if (size != 0) almost_zero.back() = 1;
  return {Bytes(size), Bytes(size, 'A'), matchable_bytes(size, seed), random_bytes(size, seed), almost_zero};
}

void append(std::vector<Bytes>& to, const std::vector<Bytes>& more) { to.insert(to.end(), more.begin(), more.end()); }

TEST(Lz4BatchCompress, Pages) {
  std::vector<Bytes> raws;
  for (size_t size = 0; size < 40; ++size) append(raws, of_each_kind(size, 1));
  for (const size_t size : {269u, 270u, 271u, 272u, 273u, 280u, 4095u, 4096u}) append(raws, of_each_kind(size, 2));
  for (const Framing framing : {Framing::raw, Framing::numcodecs}) {
    for (const auto build : ptxkit::testing::kVariants) expect_blocks(raws, {.framing = framing, .build = build});
  }
}

// Few pages go to the kernel of chunks, whose bytes differ.
TEST(Lz4BatchCompress, FewPages) {
  std::vector<Bytes> raws;
  for (const size_t size : {0u, 1u, 5u, 12u, 13u, 24u, 270u, 4095u, 4096u}) append(raws, of_each_kind(size, 2));
  std::vector<BatchCase> items;
  for (const Bytes& raw : raws) items.push_back({.bytes = raw});
  for (const Framing framing : {Framing::raw, Framing::numcodecs}) {
    for (const auto build : ptxkit::testing::kVariants) {
      const BatchRan ran = compress_batch(items, {.framing = framing, .build = build, .few_pages = items.size() + 1});
      ASSERT_EQ(ran.report, "");
      EXPECT_FALSE(ran.claims_too_much);
      EXPECT_EQ(ran.statuses, std::vector<uint32_t>(items.size(), kOk));
      for (size_t i = 0; i < raws.size(); ++i) {
        Bytes block = ran.outputs[i];
        if (framing == Framing::numcodecs) block.erase(block.begin(), block.begin() + 4);
        EXPECT_TRUE(decoded_by_liblz4(block, raws[i].size()) == raws[i]) << i;
        EXPECT_LE(block.size(), raws[i].size() + 2 + raws[i].size() / 255) << i;
      }
    }
  }
  const Bytes raw = matchable_bytes(4000, 1);
  const BatchRan bad = compress_batch({{.bytes = raw},
                                       {.bytes = raw, .is_null = true},
                                       {.bytes = raw, .misalignment = 8},
                                       {.bytes = raw, .claimed_bytes = 4097},
                                       {.bytes = raw, .claimed_bytes = uint64_t{1} << 32},
                                       {.bytes = {}, .is_null = true}},
                                      {.max_input_bytes = 4096, .few_pages = 7});
  ASSERT_EQ(bad.report, "");
  EXPECT_EQ(bad.statuses, (std::vector{kOk, kInvalidValue, kMisaligned, kTooLarge, kTooLarge, kOk}));
}

TEST(Lz4BatchCompress, Chunks) {
  std::vector<Bytes> raws;
  for (const size_t size : {0u, 13u, 4096u, 4097u, 8192u, 30'001u, 65'535u, 65'536u})
    append(raws, of_each_kind(size, 3));
  for (const Framing framing : {Framing::raw, Framing::numcodecs}) {
    for (const auto build : ptxkit::testing::kVariants) expect_blocks(raws, {.framing = framing, .build = build});
  }
}

// Chunks of every kind beside chunks of every kind, and last chunks that go to the kernel of pages.
TEST(Lz4BatchCompress, ItemsOfSeveralChunks) {
  std::vector<Bytes> raws = {Bytes{}, matchable_bytes(100, 1), random_bytes(5000, 2)};
  for (const size_t size : {65'537u, 65'536u + 12, 65'536u + 4096, 131'072u}) append(raws, of_each_kind(size, 4));
  uint32_t state = 1;
  for (int i = 0; i < 8; ++i) {
    Bytes raw;
    for (int chunk = 0; chunk < 5; ++chunk) {
      state = state * 1664525 + 1013904223;
      const Bytes more = of_each_kind(65'536, state)[(state >> 24) % 5];
      raw.insert(raw.end(), more.begin(), more.end());
    }
    raw.resize(raw.size() - (state >> 16) % 65'536);
    raws.push_back(raw);
  }
  Bytes between = random_bytes(65'536, 9);
  for (const Bytes& more : {matchable_bytes(65'536, 1), random_bytes(131'072, 5), matchable_bytes(65'536, 2)}) {
    between.insert(between.end(), more.begin(), more.end());
  }
  raws.push_back(between);
  for (const Framing framing : {Framing::raw, Framing::numcodecs}) expect_blocks(raws, {.framing = framing});
}

TEST(Lz4BatchCompress, ItemsOfSeveralChunksInADebugBuild) {
  std::vector<Bytes> raws;
  append(raws, of_each_kind(65'540, 4));
  append(raws, of_each_kind(140'000, 5));
  expect_blocks(raws, {.build = "debug"});
}

// More chunks than the lanes of the warp that plans them.
TEST(Lz4BatchCompress, ItemsOfMoreChunksThanLanes) {
  Bytes mixed;
  for (uint32_t i = 0; mixed.size() < (2u << 20) + 70'000; ++i) {
    const Bytes more = i % 7 == 3 ? random_bytes(150'000, i) : i % 3 == 1 ? Bytes(90'000) : matchable_bytes(60'000, i);
    mixed.insert(mixed.end(), more.begin(), more.end());
  }
  Bytes noise = random_bytes((2u << 20) + 70'000, 1), late = noise;
  std::fill_n(late.end() - 30'000, 30'000, uint8_t{'x'});
  Bytes early = noise;
  std::fill_n(early.begin(), 30'000, uint8_t{'x'});
  expect_blocks({mixed, noise, late, early, Bytes((2u << 20) + 1), matchable_bytes((1u << 20) + 1, 1)});
}

TEST(Lz4BatchCompress, EveryStatus) {
  const Bytes page = matchable_bytes(4000, 1), chunk = matchable_bytes(10'000, 1), large = matchable_bytes(70'000, 1);
  std::vector<BatchCase> items;
  std::vector<uint32_t> expected;
  for (const Bytes& raw : {page, chunk, large}) {
    items.push_back({.bytes = raw});
    items.push_back({.bytes = raw, .is_null = true});
    items.push_back({.bytes = raw, .is_room_null = true});
    items.push_back({.bytes = raw, .misalignment = 1});
    items.push_back({.bytes = raw, .misalignment = 8});
    items.push_back({.bytes = raw, .claimed_bytes = 70'001});
    items.push_back({.bytes = raw, .claimed_bytes = (uint64_t{1} << 32) + raw.size()});
    items.push_back({.bytes = raw, .claimed_bytes = ~uint64_t{0}});
    for (const uint32_t status :
         {kOk, kInvalidValue, kInvalidValue, kMisaligned, kMisaligned, kTooLarge, kTooLarge, kTooLarge})
      expected.push_back(status);
  }
  items.push_back({.bytes = {}, .is_null = true});  // an empty item needs no address
  expected.push_back(kOk);
  for (const auto build : ptxkit::testing::kVariants) {
    const BatchRan ran = compress_batch(items, {.build = build, .max_input_bytes = 70'000});
    ASSERT_EQ(ran.report, "");
    EXPECT_EQ(ran.statuses, expected);
    for (size_t i = 0; i < items.size(); ++i) {
      if (expected[i] == kOk) {
        EXPECT_TRUE(decoded_by_liblz4(ran.outputs[i], items[i].bytes.size()) == items[i].bytes) << i;
      } else {
        EXPECT_EQ(ran.sizes[i], 0u) << i;
      }
    }
  }
  const BatchRan pages = compress_batch({{.bytes = chunk}, {.bytes = page}}, {.max_input_bytes = 4096});
  EXPECT_EQ(pages.statuses, (std::vector{kTooLarge, kOk}));
}

TEST(Lz4BatchCompress, WithoutStatuses) {
  const Bytes raw = matchable_bytes(70'000, 3);
  const BatchRan ran = compress_batch({{.bytes = raw}}, {.with_statuses = false});
  ASSERT_EQ(ran.report, "");
  EXPECT_TRUE(ran.outputs[0] == block_of_the_host(raw));
}

}  // namespace
}  // namespace ptxkit::kernels
