// Items of framings `frame` and `hdf5` through lz4_batch_index, lz4_batch_blocks and lz4_batch_finish on the emulator
// with every check: beside their reference, whose verdicts are those of the host's readers (c_api_test, FramedItems).
#include <algorithm>
#include <iterator>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <lz4.h>
#include <lz4frame.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/frames.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"
#include "fkr_tests/emulated/lz4_batches.hpp"
#include "fkr_tests/emulated/lz4_blocks.hpp"
#include "fkr_tests/fuzz/stream_damage.hpp"
#include "kernels/abi.hpp"
#include "kernels/lz4/lz4_batch_reference.hpp"
#include "kernels/lz4/xxh32_reference.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/library/device_batches.hpp"

namespace ptxkit::kernels {
namespace {

using library::Framing;
using ptxkit::testing::BatchCase;
using ptxkit::testing::BatchOptions;
using ptxkit::testing::BatchRan;
using ptxkit::testing::Bytes;
using ptxkit::testing::compress_batch;
using ptxkit::testing::decompress_batch;
using ptxkit::testing::matchable_bytes;
using ptxkit::testing::random_bytes;

constexpr Framing kFramings[] = {Framing::frame, Framing::hdf5};
constexpr size_t kListedBytes = sizeof(Lz4BatchBlock) + 4;  // of temporary memory, for each block

struct FrameOptions {
  bool is_linked = false, has_size = true, has_block_checksums = false, has_checksum = false;
};

Bytes frame_of(const Bytes& raw, const FrameOptions& options = {}) {
  LZ4F_preferences_t wanted = {};
  wanted.frameInfo.blockSizeID = LZ4F_max64KB;
  wanted.frameInfo.blockMode = options.is_linked ? LZ4F_blockLinked : LZ4F_blockIndependent;
  wanted.frameInfo.contentChecksumFlag = options.has_checksum ? LZ4F_contentChecksumEnabled : LZ4F_noContentChecksum;
  wanted.frameInfo.blockChecksumFlag = options.has_block_checksums ? LZ4F_blockChecksumEnabled : LZ4F_noBlockChecksum;
  wanted.frameInfo.contentSize = options.has_size ? raw.size() : 0;
  Bytes frame(LZ4F_compressFrameBound(raw.size(), &wanted));
  const size_t size = LZ4F_compressFrame(frame.data(), frame.size(), raw.data(), raw.size(), &wanted);
  EXPECT_FALSE(LZ4F_isError(size));
  frame.resize(size);
  return frame;
}

void append_big_endian(uint64_t value, size_t count, Bytes& out) {
  while (count-- != 0) out.push_back(static_cast<uint8_t>(value >> 8 * count));
}

Bytes chunk_of(const Bytes& raw, uint32_t block_bytes = 65'536) {
  Bytes chunk;
  append_big_endian(raw.size(), 8, chunk);
  append_big_endian(block_bytes, 4, chunk);
  for (size_t at = 0; at < raw.size(); at += block_bytes) {
    const Bytes part(raw.begin() + static_cast<ptrdiff_t>(at),
                     raw.begin() + static_cast<ptrdiff_t>(std::min<size_t>(at + block_bytes, raw.size())));
    Bytes block(part.size());
    const int size =
        LZ4_compress_default(reinterpret_cast<const char*>(part.data()), reinterpret_cast<char*>(block.data()),
                             static_cast<int>(part.size()), static_cast<int>(part.size()) - 1);
    block.resize(static_cast<size_t>(size));
    if (size == 0) block = part;
    append_big_endian(block.size(), 4, chunk);
    chunk.insert(chunk.end(), block.begin(), block.end());
  }
  return chunk;
}

Bytes framed(Framing framing, const Bytes& raw) { return framing == Framing::frame ? frame_of(raw) : chunk_of(raw); }

Bytes together(const Bytes& first, const Bytes& second) {
  Bytes both = first;
  both.insert(both.end(), second.begin(), second.end());
  return both;
}

BatchRan expect_as_reference(const std::vector<BatchCase>& items, const BatchOptions& options) {
  BatchRan ran = decompress_batch(items, options);
  EXPECT_EQ(ran.report, "");
  EXPECT_FALSE(ran.claims_too_much);
  if (!ran.report.empty()) return ran;
  const BatchRan measured = sizes_of_batch(items, {.framing = options.framing, .build = options.build});
  EXPECT_EQ(measured.report, "");
  for (size_t i = 0; i < items.size(); ++i) {
    Bytes expected(items[i].capacity);
    const auto framing = static_cast<BatchFraming>(options.framing);
    const BatchItem item = lz4_batch_decompress_reference(items[i].bytes, expected, framing);
    expected.resize(item.size_bytes);
    EXPECT_EQ(ran.statuses[i], static_cast<uint32_t>(item.status)) << "item " << i;
    EXPECT_EQ(ran.sizes[i], item.size_bytes) << "item " << i;
    EXPECT_TRUE(ran.outputs[i] == expected) << "item " << i;
    const BatchItem size = lz4_batch_size_reference(items[i].bytes, framing);
    EXPECT_EQ(measured.statuses.at(i), static_cast<uint32_t>(size.status)) << "item " << i;
    EXPECT_EQ(measured.sizes.at(i), size.size_bytes) << "item " << i;
  }
  return ran;
}

std::vector<uint32_t> all(size_t count, BatchStatus status) {
  return std::vector<uint32_t>(count, static_cast<uint32_t>(status));
}

TEST(Xxh32, TheReferenceIsThatOfTheLibrary) {
  for (size_t size = 0; size < 70; ++size) {
    const Bytes bytes = random_bytes(size, static_cast<uint32_t>(size) + 1);
    EXPECT_EQ(xxh32_reference(bytes), format::block_hash(bytes)) << size;
  }
  const Bytes bytes = random_bytes(5000, 1);
  EXPECT_EQ(xxh32_reference(bytes), format::block_hash(bytes));
}

TEST(Lz4BatchFramed, ItemsOfManySizesAnywhere) {
  for (const Framing framing : kFramings) {
    std::vector<BatchCase> items;
    std::vector<Bytes> raws;
    for (const uint32_t size : {0u, 1u, 13u, 300u, 4096u, 65'536u, 65'537u, 200'000u}) {
      for (const Bytes& raw : {matchable_bytes(size, size), Bytes(size), random_bytes(size, size)}) {
        raws.push_back(raw);
        items.push_back({.bytes = framed(framing, raw),
                         .capacity = size + items.size() % 3,
                         .misalignment = static_cast<uint32_t>(items.size() % 16)});
      }
    }
    for (const auto build : ptxkit::testing::kVariants) {
      const BatchRan ran = expect_as_reference(items, {.framing = framing, .build = build});
      EXPECT_EQ(ran.statuses, all(items.size(), BatchStatus::ok));
      for (size_t i = 0; i < ran.outputs.size(); ++i) EXPECT_TRUE(ran.outputs[i] == raws[i]) << i;
    }
  }
}

// With room for no block, one, two and all of three.
TEST(Lz4BatchFramed, WhateverTheIndexHasRoomFor) {
  const Bytes raw = matchable_bytes(150'000, 5), other = random_bytes(100'000, 6);
  for (const Framing framing : kFramings) {
    const std::vector<BatchCase> items = {{.bytes = framed(framing, raw), .capacity = raw.size()},
                                          {.bytes = framed(framing, other), .capacity = other.size() + 5}};
    for (const size_t blocks : {0, 1, 2, 3, 4}) {
      const auto ran = expect_as_reference(
          items, {.framing = framing, .temp_bytes = 2 * (sizeof(Lz4BatchLayout) + blocks * kListedBytes) + blocks % 3});
      EXPECT_EQ(ran.statuses, all(2, BatchStatus::ok));
    }
  }
}

TEST(Lz4BatchFramed, FramesOfEveryKind) {
  const Bytes raw = matchable_bytes(200'000, 3), noise = random_bytes(70'000, 4);
  std::vector<BatchCase> items;
  for (unsigned bits = 0; bits < 16; ++bits) {
    const FrameOptions options{.is_linked = (bits & 1) != 0,
                               .has_size = (bits & 2) != 0,
                               .has_block_checksums = (bits & 4) != 0,
                               .has_checksum = (bits & 8) != 0};
    items.push_back({.bytes = frame_of(raw, options), .capacity = raw.size()});
    items.push_back({.bytes = frame_of(noise, options), .capacity = noise.size() + bits});
    items.push_back({.bytes = frame_of(raw, options), .capacity = raw.size() - 1});
  }
  const BatchRan ran = expect_as_reference(items, {.framing = Framing::frame});
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(ran.statuses.at(i), static_cast<uint32_t>(i % 3 == 2 ? BatchStatus::output_too_small : BatchStatus::ok));
  }
}

// Blocks that are not full, as a flush makes them: each is decoded where the one before it ended.
TEST(Lz4BatchFramed, BlocksThatAreNotFull) {
  const Bytes raw = matchable_bytes(90'000, 3);
  for (const bool is_linked : {false, true}) {
    LZ4F_preferences_t wanted = {};
    wanted.frameInfo.blockSizeID = LZ4F_max64KB;
    wanted.frameInfo.blockMode = is_linked ? LZ4F_blockLinked : LZ4F_blockIndependent;
    LZ4F_cctx* context = nullptr;
    ASSERT_FALSE(LZ4F_isError(LZ4F_createCompressionContext(&context, LZ4F_VERSION)));
    Bytes frame(LZ4F_compressBound(raw.size(), &wanted) + 400'000);
    size_t used = LZ4F_compressBegin(context, frame.data(), frame.size(), &wanted);
    for (size_t at = 0; at < raw.size(); at += 30'000) {
      used += LZ4F_compressUpdate(context, frame.data() + used, frame.size() - used, raw.data() + at, 30'000, nullptr);
      used += LZ4F_flush(context, frame.data() + used, frame.size() - used, nullptr);
    }
    used += LZ4F_compressEnd(context, frame.data() + used, frame.size() - used, nullptr);
    LZ4F_freeCompressionContext(context);
    frame.resize(used);
    const BatchRan ran =
        expect_as_reference({{.bytes = frame, .capacity = raw.size()}, {.bytes = frame, .capacity = raw.size() - 1}},
                            {.framing = Framing::frame});
    EXPECT_TRUE(ran.outputs.at(0) == raw);
    EXPECT_EQ(ran.statuses.at(1), static_cast<uint32_t>(BatchStatus::output_too_small));
  }
}

TEST(Lz4BatchFramed, SeveralFramesSkippableLegacyAndDictionary) {
  const Bytes raw = matchable_bytes(1000, 3), frame = frame_of(raw), checked = frame_of(raw, {.has_checksum = true});
  const Bytes skippable = {0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};
  const Bytes legacy = {0x02, 0x21, 0x4c, 0x18, 2, 0, 0, 0, 0x10, 'a'};
  Bytes with_dictionary = {0x04, 0x22, 0x4d, 0x18, 0x61, 0x40, 1, 0, 0, 0};
  with_dictionary.push_back(format::header_hash(std::span(with_dictionary).subspan(4)));
  with_dictionary.insert(with_dictionary.end(), 4, 0);
  const std::vector<BatchCase> items = {
      {.bytes = together(frame, checked), .capacity = 2000},
      {.bytes = together(frame, checked), .capacity = 1999},
      {.bytes = together(together(skippable, frame), skippable), .capacity = 1000},
      {.bytes = skippable, .capacity = 0},
      {.bytes = together(skippable, {1, 2, 3}), .capacity = 9},
      {.bytes = together(frame, {0}), .capacity = 1000},
      {.bytes = together(frame, legacy), .capacity = 2000},
      {.bytes = legacy, .capacity = 2000},
      {.bytes = with_dictionary, .capacity = 2000},
      {.bytes = {}, .capacity = 2000},
      {.bytes = together(frame, frame_of(raw, {.has_size = false})), .capacity = 2000},
  };
  const BatchRan ran = expect_as_reference(items, {.framing = Framing::frame});
  using enum BatchStatus;
  const BatchStatus expected[] = {
      ok,          output_too_small,  ok, ok, cannot_decompress, cannot_decompress, unsupported, unsupported,
      unsupported, cannot_decompress, ok};
  for (size_t i = 0; i < items.size(); ++i) EXPECT_EQ(ran.statuses.at(i), static_cast<uint32_t>(expected[i])) << i;
  EXPECT_TRUE(ran.outputs.at(0) == together(raw, raw));
}

TEST(Lz4BatchFramed, WrongChecksumsAndSizes) {
  const Bytes raw = matchable_bytes(70'000, 3);
  const Bytes good = frame_of(raw, {.has_block_checksums = true, .has_checksum = true});
  std::vector<BatchCase> items;
  const auto changed = [&](size_t at) {
    Bytes bytes = good;
    bytes[at] ^= 1;
    items.push_back({.bytes = bytes, .capacity = raw.size()});
  };
  changed(14);               // of the header
  changed(good.size() - 1);  // of the content
  changed(good.size() - 9);  // of the last block
  changed(40);               // a byte of the first
  Bytes without = frame_of(raw, {.has_checksum = true});
  without[60] ^= 64;
  items.push_back({.bytes = without, .capacity = raw.size()});
  // A size that the blocks do not have.
  for (const int more : {-1, 1}) {
    Bytes bytes = frame_of(raw);
    bytes[6] = static_cast<uint8_t>(bytes[6] + more);
    bytes[14] = format::header_hash(std::span(bytes).subspan(4, 10));
    items.push_back({.bytes = bytes, .capacity = raw.size() + 9});
    Bytes chunk = chunk_of(raw);
    chunk[7] = static_cast<uint8_t>(chunk[7] + more);
    const BatchRan ran =
        expect_as_reference({{.bytes = chunk, .capacity = raw.size() + 9}}, {.framing = Framing::hdf5});
    EXPECT_EQ(ran.statuses, all(1, BatchStatus::cannot_decompress));
  }
  const BatchRan ran = expect_as_reference(items, {.framing = Framing::frame});
  using enum BatchStatus;
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(ran.statuses.at(i), static_cast<uint32_t>(bad_checksum)) << i;
  for (size_t i = 5; i < 7; ++i) EXPECT_EQ(ran.statuses.at(i), static_cast<uint32_t>(cannot_decompress)) << i;
}

TEST(Lz4BatchFramed, ChunksWithBlocksOfOtherSizes) {
  const Bytes raw = matchable_bytes(30'000, 3);
  std::vector<BatchCase> items;
  for (const uint32_t block : {1u, 7u, 1000u, 29'999u, 30'000u, 30'001u, 1u << 30, ~0u}) {
    if (block < 7) {
      items.push_back({.bytes = chunk_of(Bytes(raw.begin(), raw.begin() + 50), block), .capacity = 50});
    } else {
      items.push_back({.bytes = chunk_of(raw, block), .capacity = raw.size()});
    }
  }
  Bytes huge;
  append_big_endian(~uint64_t{0}, 8, huge);
  append_big_endian(~uint32_t{0}, 4, huge);
  append_big_endian(1, 4, huge);
  huge.push_back(0);
  items.push_back({.bytes = huge, .capacity = 100});
  Bytes none;
  append_big_endian(5, 8, none);
  append_big_endian(0, 4, none);
  items.push_back({.bytes = none, .capacity = 100});
  items.push_back({.bytes = together(chunk_of(raw), {0}), .capacity = raw.size()});
  const BatchRan ran = expect_as_reference(items, {.framing = Framing::hdf5});
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(ran.statuses.at(i), 0u) << i;
  for (size_t i = 8; i < items.size(); ++i)
    EXPECT_EQ(ran.statuses.at(i), static_cast<uint32_t>(BatchStatus::cannot_decompress)) << i;
}

TEST(Lz4BatchFramed, DamagedItemsAffectNoOther) {
  const Bytes raw = matchable_bytes(300, 11);
  for (const Framing framing : kFramings) {
    const Bytes good = framing == Framing::frame ? frame_of(raw, {.has_block_checksums = true, .has_checksum = true})
                                                 : chunk_of(raw, 100);
    std::vector<BatchCase> items;
    for (size_t at = 0; at < good.size(); ++at) {
      Bytes changed = good;
      changed[at] = static_cast<uint8_t>(changed[at] ^ (1u << at % 8));
      items.push_back({.bytes = changed, .capacity = 300});
      items.push_back({.bytes = good, .capacity = 300});
      items.push_back({.bytes = Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(at)), .capacity = 300});
    }
    for (const uint64_t capacity : {0u, 1u, 299u, 301u}) items.push_back({.bytes = good, .capacity = capacity});
    items.push_back({.bytes = good, .capacity = 300, .claimed_bytes = uint64_t{1} << 31});
    constexpr size_t kAtOnce = 99;  // so few that the markers of a debug build have room
    for (size_t begin = 0; begin < 3 * good.size(); begin += kAtOnce) {
      const size_t end = std::min(begin + kAtOnce, items.size() - 1);
      const std::vector<BatchCase> some(items.begin() + static_cast<ptrdiff_t>(begin),
                                        items.begin() + static_cast<ptrdiff_t>(end));
      for (const auto build : ptxkit::testing::kVariants) {
        const BatchRan ran =
            expect_as_reference(some, {.framing = framing,
                                       .build = build,
                                       .temp_bytes = some.size() * (sizeof(Lz4BatchLayout) + 3 * kListedBytes)});
        for (size_t i = 1; i < std::min(end, 3 * good.size()) - begin; i += 3) {
          EXPECT_TRUE(ran.outputs.at(i) == raw) << i;
        }
      }
    }
    items[0].is_null = items[1].is_room_null = true;
    const BatchRan ran = decompress_batch(items, {.framing = framing});
    ASSERT_EQ(ran.report, "");
    EXPECT_EQ(ran.statuses[0], static_cast<uint32_t>(BatchStatus::invalid_value));
    EXPECT_EQ(ran.statuses[1], static_cast<uint32_t>(BatchStatus::invalid_value));
    EXPECT_EQ(ran.statuses.back(), static_cast<uint32_t>(BatchStatus::too_large));
  }
}

TEST(Lz4BatchFramed, CompressedItemsAreReadByLiblz4) {
  for (const Framing framing : kFramings) {
    for (const std::vector<uint32_t>& sizes :
         {std::vector<uint32_t>{0, 1, 12, 13, 100}, {4096, 5000, 65'536}, {7, 65'537, 131'072, 140'000}, {0}}) {
      std::vector<BatchCase> items;
      for (const uint32_t size : sizes) {
        for (const Bytes& raw : {matchable_bytes(size, size), Bytes(size), random_bytes(size, size)}) {
          items.push_back({.bytes = raw});
        }
      }
      for (const auto build : ptxkit::testing::kVariants) {
        if (build == "debug" && sizes[0] > 0) continue;
        const BatchRan ran = compress_batch(items, {.framing = framing, .build = build, .few_pages = 1000});
        ASSERT_EQ(ran.report, "");
        EXPECT_FALSE(ran.claims_too_much);
        EXPECT_EQ(ran.statuses, all(items.size(), BatchStatus::ok));
        for (size_t i = 0; i < items.size(); ++i) {
          const Bytes& raw = items[i].bytes;
          Bytes back(raw.size());
          const auto item = lz4_batch_framed_reference(ran.outputs[i], back, static_cast<BatchFraming>(framing));
          EXPECT_EQ(item.status, BatchStatus::ok) << i;
          EXPECT_EQ(item.size_bytes, raw.size());
          EXPECT_TRUE(back == raw) << i;
          if (framing == Framing::frame) {
            EXPECT_TRUE(ptxkit::testing::decode_with_liblz4(ran.outputs[i], raw.size()) == raw) << i;
          }
        }
      }
    }
  }
}

TEST(Lz4BatchFramed, StatusesOfACompression) {
  const Bytes raw = matchable_bytes(300, 1);
  for (const Framing framing : kFramings) {
    const BatchRan ran = compress_batch({{.bytes = raw},
                                         {.bytes = raw, .misalignment = 4},
                                         {.bytes = raw, .is_null = true},
                                         {.bytes = raw, .is_room_null = true},
                                         {.bytes = raw, .claimed_bytes = 301},
                                         {.bytes = raw, .claimed_bytes = ~uint64_t{0}},
                                         {.bytes = {}, .is_null = true}},
                                        {.framing = framing, .max_input_bytes = 300});
    ASSERT_EQ(ran.report, "");
    using enum BatchStatus;
    const BatchStatus expected[] = {ok, misaligned, invalid_value, invalid_value, too_large, too_large, ok};
    for (size_t i = 0; i < std::size(expected); ++i) {
      EXPECT_EQ(ran.statuses.at(i), static_cast<uint32_t>(expected[i])) << i;
      EXPECT_EQ(ran.sizes.at(i) == 0, expected[i] != ok) << i;
    }
  }
}

TEST(Lz4BatchFramed, ItemsWithSeededDamage) {
  std::mt19937 random(1);
  for (const Framing framing : kFramings) {
    for (int launch = 0; launch < 10; ++launch) {
      std::vector<BatchCase> items;
      for (int i = 0; i < 150; ++i) {
        const Bytes raw = matchable_bytes(random() % 300, static_cast<uint32_t>(random()));
        Bytes item = framing == Framing::hdf5 ? chunk_of(raw, 1 + static_cast<uint32_t>(random() % 300))
                                              : frame_of(raw, {.is_linked = random() % 2 != 0,
                                                               .has_size = random() % 2 != 0,
                                                               .has_block_checksums = random() % 2 != 0,
                                                               .has_checksum = random() % 2 != 0});
        fuzz::damage(item, random);
        items.push_back({.bytes = item, .capacity = random() % 400});
      }
      expect_as_reference(items, {.framing = framing,
                                  .temp_bytes = items.size() * (sizeof(Lz4BatchLayout) + random() % 4 * kListedBytes)});
    }
  }
}

TEST(Lz4BatchFramed, WithoutStatusesAndSizes) {
  const Bytes raw = matchable_bytes(500, 3);
  for (const Framing framing : kFramings) {
    const std::vector<BatchCase> items(3, {.bytes = framed(framing, raw), .capacity = 500});
    const BatchRan ran = decompress_batch(items, {.framing = framing, .with_statuses = false, .with_sizes = false});
    ASSERT_EQ(ran.report, "");
    for (const Bytes& output : ran.outputs) EXPECT_TRUE(output == raw);
  }
}

}  // namespace
}  // namespace ptxkit::kernels
