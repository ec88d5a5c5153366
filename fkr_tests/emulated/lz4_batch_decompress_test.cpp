// Batches of LZ4 items through lz4_batch_decompress on the emulator: beside its reference, on good and on hostile
// input.
#include <vector>

#include <gtest/gtest.h>
#include <lz4.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"
#include "fkr_tests/emulated/lz4_batches.hpp"
#include "fkr_tests/emulated/lz4_blocks.hpp"
#include "kernels/abi.hpp"
#include "kernels/lz4/lz4_batch_reference.hpp"
#include "runtime/library/device_batches.hpp"

namespace ptxkit::kernels {
namespace {

using library::Framing;
using ptxkit::testing::BatchCase;
using ptxkit::testing::BatchOptions;
using ptxkit::testing::BatchRan;
using ptxkit::testing::Bytes;
using ptxkit::testing::decompress_batch;
using ptxkit::testing::matchable_bytes;
using ptxkit::testing::random_bytes;

constexpr auto kOk = static_cast<uint32_t>(BatchStatus::ok);
constexpr auto kInvalidValue = static_cast<uint32_t>(BatchStatus::invalid_value);
constexpr auto kCannotDecompress = static_cast<uint32_t>(BatchStatus::cannot_decompress);
constexpr auto kOutputTooSmall = static_cast<uint32_t>(BatchStatus::output_too_small);
constexpr auto kTooLarge = static_cast<uint32_t>(BatchStatus::too_large);
constexpr Framing kFramings[] = {Framing::raw, Framing::numcodecs};

Bytes block_of(const Bytes& raw) {
  Bytes block(static_cast<size_t>(LZ4_compressBound(static_cast<int>(raw.size()))));
  const int size =
      LZ4_compress_default(reinterpret_cast<const char*>(raw.data()), reinterpret_cast<char*>(block.data()),
                           static_cast<int>(raw.size()), static_cast<int>(block.size()));
  block.resize(static_cast<size_t>(size));
  return block;
}

Bytes with_size(size_t raw_bytes, const Bytes& block) {
  Bytes framed;
  for (int shift = 0; shift < 32; shift += 8) framed.push_back(static_cast<uint8_t>(raw_bytes >> shift));
  framed.insert(framed.end(), block.begin(), block.end());
  return framed;
}

Bytes framed(Framing framing, const Bytes& raw) {
  return framing == Framing::raw ? block_of(raw) : with_size(raw.size(), block_of(raw));
}

BatchRan expect_as_reference(const std::vector<BatchCase>& items, const BatchOptions& options) {
  const BatchRan ran = decompress_batch(items, options);
  EXPECT_EQ(ran.report, "");
  EXPECT_FALSE(ran.claims_too_much);
  for (size_t i = 0; i < items.size() && ran.report.empty(); ++i) {
    Bytes expected(items[i].capacity);
    const BatchItem item =
        lz4_batch_decompress_reference(items[i].bytes, expected, static_cast<BatchFraming>(options.framing));
    expected.resize(item.size_bytes);
    EXPECT_EQ(ran.statuses[i], static_cast<uint32_t>(item.status)) << "item " << i;
    EXPECT_EQ(ran.sizes[i], item.size_bytes) << "item " << i;
    EXPECT_TRUE(ran.outputs[i] == expected) << "item " << i;
  }
  return ran;
}

TEST(Lz4BatchDecompress, ItemsOfManySizesAnywhere) {
  for (const Framing framing : kFramings) {
    std::vector<BatchCase> items;
    for (const uint32_t size : {0u, 1u, 12u, 13u, 300u, 4096u, 20'000u, 65'536u}) {
      for (const Bytes& raw : {matchable_bytes(size, size), Bytes(size), random_bytes(size, size)}) {
        items.push_back({.bytes = framed(framing, raw),
                         .capacity = size + items.size() % 3,
                         .misalignment = static_cast<uint32_t>(items.size() % 16)});
      }
    }
    for (const auto build : ptxkit::testing::kVariants) {
      const BatchRan ran = expect_as_reference(items, {.framing = framing, .build = build});
      EXPECT_EQ(ran.statuses, std::vector<uint32_t>(items.size(), kOk));
    }
  }
}

TEST(Lz4BatchDecompress, DamagedItemsAffectNoOther) {
  const Bytes raw = matchable_bytes(300, 11);
  for (const Framing framing : kFramings) {
    const Bytes good = framed(framing, raw);
    std::vector<BatchCase> items;
    for (size_t at = 0; at < good.size(); ++at) {
      Bytes changed = good;
      changed[at] = static_cast<uint8_t>(changed[at] ^ (1u << at % 8));
      items.push_back({.bytes = changed, .capacity = 300});
      items.push_back({.bytes = good, .capacity = 300});
      items.push_back({.bytes = Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(at)), .capacity = 300});
    }
    for (const uint64_t capacity : {0u, 1u, 200u, 299u, 301u}) items.push_back({.bytes = good, .capacity = capacity});
    for (const auto build : ptxkit::testing::kVariants) {
      const BatchRan ran = expect_as_reference(items, {.framing = framing, .build = build});
      for (size_t i = 1; i < 3 * good.size(); i += 3) EXPECT_TRUE(ran.outputs[i] == raw) << i;
    }
  }
}

TEST(Lz4BatchDecompress, EveryStatus) {
  const Bytes raw = matchable_bytes(100, 3), block = block_of(raw);
  const std::vector<BatchCase> items = {
      {.bytes = block, .capacity = 100},
      {.bytes = block, .capacity = 99},
      {.bytes = {}, .capacity = 8},
      {.bytes = block, .capacity = 100, .is_null = true},
      {.bytes = block, .capacity = 100, .is_room_null = true},
      {.bytes = {0x00}, .capacity = 0, .is_room_null = true},
      {.bytes = {}, .capacity = 8, .is_null = true},
      {.bytes = block, .capacity = 100, .claimed_bytes = uint64_t{1} << 31},
      {.bytes = block, .capacity = 100, .claimed_bytes = (uint64_t{1} << 32) + block.size()},
      {.bytes = block, .capacity = 100, .claimed_bytes = ~uint64_t{0}},
      {.bytes = block, .capacity = 100, .claimed_bytes = block.size() - 1},
  };
  for (const auto build : ptxkit::testing::kVariants) {
    const BatchRan ran = decompress_batch(items, {.build = build});
    ASSERT_EQ(ran.report, "");
    EXPECT_EQ(ran.statuses, (std::vector{kOk, kOutputTooSmall, kCannotDecompress, kInvalidValue, kInvalidValue, kOk,
                                         kCannotDecompress, kTooLarge, kTooLarge, kTooLarge, kCannotDecompress}));
    EXPECT_TRUE(ran.outputs[0] == raw);
    for (size_t i = 1; i < items.size(); ++i) EXPECT_EQ(ran.sizes[i], 0u) << i;
  }
}

// The size before a block is that of the result, not only a limit.
TEST(Lz4BatchDecompress, ASizeInFrontThatIsWrong) {
  const Bytes raw = matchable_bytes(100, 3), block = block_of(raw);
  const std::vector<BatchCase> items = {
      {.bytes = with_size(100, block), .capacity = 100},
      {.bytes = with_size(99, block), .capacity = 100},
      {.bytes = with_size(101, block), .capacity = 200},
      {.bytes = with_size(101, block), .capacity = 100},
      {.bytes = with_size(0xFFFFFFFF, block), .capacity = 100},
      {.bytes = {1, 0, 0}, .capacity = 100},
      {.bytes = {0, 0, 0, 0}, .capacity = 100},
      {.bytes = {0, 0, 0, 0, 0}, .capacity = 100},
  };
  const BatchRan ran = expect_as_reference(items, {.framing = Framing::numcodecs});
  EXPECT_EQ(ran.statuses, (std::vector{kOk, kCannotDecompress, kCannotDecompress, kOutputTooSmall, kOutputTooSmall,
                                       kCannotDecompress, kCannotDecompress, kOk}));
}

TEST(Lz4BatchDecompress, WithoutStatusesAndSizes) {
  const Bytes raw = matchable_bytes(500, 3);
  const std::vector<BatchCase> items(3, {.bytes = block_of(raw), .capacity = 500});
  for (const auto build : ptxkit::testing::kVariants) {
    const BatchRan ran = decompress_batch(items, {.build = build, .with_statuses = false, .with_sizes = false});
    ASSERT_EQ(ran.report, "");
    for (const Bytes& output : ran.outputs) EXPECT_TRUE(output == raw);
  }
}

// 255 bytes of 255 for each 65025 of length: a length of 2^32 and more must not wrap around to one that fits.
TEST(Lz4BatchDecompress, LengthsThatDoNotFit32Bits) {
  constexpr size_t kFull = (uint64_t{1} << 32) / 255;  // 15 + 255 * kFull is 14 + 2^32
  for (const bool is_match : {false, true}) {
    Bytes block = is_match ? Bytes{0x1f, 'a', 1, 0} : Bytes{0xf0};
    block.insert(block.end(), kFull, 255);
    block.insert(block.end(), {0, 0x20, 'x', 'y'});
    const BatchRan ran = expect_as_reference({{.bytes = block, .capacity = 40}},
                                             {.emulation = {.checks = emulator::kCheckAll, .max_idle_steps = 0}});
    EXPECT_EQ(ran.statuses, std::vector{is_match ? kOutputTooSmall : kCannotDecompress});
  }
}

TEST(Lz4BatchDecompress, AnItemBeyondTheLimitOfTheStridedKernel) {
  Bytes raw = random_bytes(70'000, 1);
  raw.resize((1u << 24) + 3, 'x');
  const BatchRan ran = expect_as_reference({{.bytes = block_of(raw), .capacity = raw.size()}}, {});
  EXPECT_TRUE(ran.outputs.at(0) == raw);
}

void expect_sizes_as_reference(const std::vector<BatchCase>& items, const BatchOptions& options) {
  const BatchRan ran = ptxkit::testing::sizes_of_batch(items, options);
  ASSERT_EQ(ran.report, "");
  for (size_t i = 0; i < items.size(); ++i) {
    const BatchItem item = lz4_batch_size_reference(items[i].bytes, static_cast<BatchFraming>(options.framing));
    if (options.with_statuses) {
      EXPECT_EQ(ran.statuses[i], static_cast<uint32_t>(item.status)) << i;
    }
    EXPECT_EQ(ran.sizes[i], item.size_bytes) << i;
  }
}

TEST(Lz4BatchSizes, AreThoseOfTheItems) {
  for (const Framing framing : kFramings) {
    std::vector<BatchCase> items;
    for (const uint32_t size : {0u, 1u, 13u, 300u, 4096u, 65'536u, 200'000u}) {
      for (const Bytes& raw : {matchable_bytes(size, size), Bytes(size), random_bytes(size, size)}) {
        items.push_back({.bytes = framed(framing, raw), .misalignment = size % 16});
        EXPECT_EQ(lz4_batch_size_reference(items.back().bytes, static_cast<BatchFraming>(framing)).size_bytes, size);
      }
    }
    for (const auto build : ptxkit::testing::kVariants) {
      expect_sizes_as_reference(items, {.framing = framing, .build = build});
      expect_sizes_as_reference(items, {.framing = framing, .build = build, .with_statuses = false});
    }
  }
}

TEST(Lz4BatchSizes, OfDamagedItems) {
  const Bytes good = block_of(matchable_bytes(300, 11));
  std::vector<BatchCase> items;
  for (size_t at = 0; at < good.size(); ++at) {
    Bytes changed = good;
    changed[at] = static_cast<uint8_t>(changed[at] ^ (1u << at % 8));
    items.push_back({.bytes = changed});
    items.push_back({.bytes = Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(at))});
  }
  for (const Framing framing : kFramings) expect_sizes_as_reference(items, {.framing = framing});
  const BatchRan ran = ptxkit::testing::sizes_of_batch({{.bytes = good, .is_null = true},
                                                        {.bytes = good, .claimed_bytes = uint64_t{1} << 31},
                                                        {.bytes = {}, .is_null = true},
                                                        {.bytes = good}});
  EXPECT_EQ(ran.statuses, (std::vector{kInvalidValue, kTooLarge, kCannotDecompress, kOk}));
  EXPECT_EQ(ran.sizes, (std::vector<uint64_t>{0, 0, 0, 300}));
}

}  // namespace
}  // namespace ptxkit::kernels
