// The decompressor's PTX on blocks of liblz4, on the project's own blocks, and on damaged ones.
#include <gtest/gtest.h>
#include <lz4.h>
#include <lz4hc.h>

#include "fkr_tests/emulated/kernel_harness.hpp"
#include "fkr_tests/emulated/lz4_blocks.hpp"
#include "kernels/lz4/lz4_compress_reference.hpp"
#include "kernels/lz4/lz4_decompress_reference.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Block;
using ptxkit::testing::Bytes;
using ptxkit::testing::matchable_bytes;

enum class Encoder { fast, high };

Bytes encode(const Bytes& raw, Encoder encoder = Encoder::fast) {
  Bytes block(static_cast<size_t>(LZ4_compressBound(static_cast<int>(raw.size()))));
  const auto* from = reinterpret_cast<const char*>(raw.data());
  auto* to = reinterpret_cast<char*>(block.data());
  const int raw_size = static_cast<int>(raw.size()), room = static_cast<int>(block.size());
  const int size = encoder == Encoder::fast ? LZ4_compress_default(from, to, raw_size, room)
                                            : LZ4_compress_HC(from, to, raw_size, room, 9);
  block.resize(static_cast<size_t>(size));
  return block;
}

// Expects the statuses, lengths and bytes of the reference, no fault, and nothing written between the items' rooms.
void expect_as_reference(const std::vector<Block>& blocks, std::string_view build = "release") {
  const auto image = ptxkit::testing::kernel_image(kLz4Decompress, build);
  const auto ran = ptxkit::testing::emulate_decompress(image.ptx, blocks);
  ASSERT_EQ(ran.report, "") << build;
  EXPECT_FALSE(ran.touched_outside || ran.claims_too_much);
  for (size_t i = 0; i < blocks.size(); ++i) {
    Bytes expected(blocks[i].capacity);
    const auto item = lz4_decompress_reference(blocks[i].bytes, expected);
    expected.resize(item.size_bytes);
    EXPECT_EQ(ran.codes[i], static_cast<uint32_t>(item.status)) << "block " << i << ": " << status_text(item.status);
    EXPECT_EQ(ran.outputs[i], expected) << "block " << i;
  }
}

Block block_of(const Bytes& raw, Encoder encoder = Encoder::fast) {
  return {encode(raw, encoder), static_cast<uint32_t>(raw.size())};
}

TEST(Lz4Decompress, BlocksOfLiblz4) {
  std::vector<Block> blocks;
  for (uint32_t size : {0u, 1u, 12u, 13u, 40u, 300u, 4096u, 20000u}) {
    blocks.push_back(block_of(matchable_bytes(size, size)));
    blocks.push_back(block_of(matchable_bytes(size, size + 1), Encoder::high));
    blocks.push_back(block_of(Bytes(size, 'A')));
    blocks.push_back(block_of(ptxkit::testing::random_bytes(size, size)));
  }
  for (const auto build : ptxkit::testing::kVariants) expect_as_reference(blocks, build);
}

TEST(Lz4Decompress, BlocksOfOurs) {
  std::vector<Block> blocks;
  for (uint32_t size : {13u, 40u, 333u, 4096u}) {
    const Bytes raw = matchable_bytes(size, size);
    Bytes block(raw.size());
    const auto item = lz4_compress_reference(raw, block, kPageVariant);
    if (item.flag != PageFlag::compressed) continue;
    block.resize(item.size_bytes);
    blocks.push_back({block, size});
  }
  ASSERT_FALSE(blocks.empty());
  expect_as_reference(blocks);
}

// Offsets 1 to 40 with lengths below, at and above the offset and the warp's width.
TEST(Lz4Decompress, OverlappingMatches) {
  std::vector<Block> blocks;
  for (uint32_t offset = 1; offset <= 40; ++offset) {
    for (uint32_t length : {4u, 18u, 19u, 31u, 32u, 33u, 64u, 100u, 274u}) {
      Bytes block = {static_cast<uint8_t>(0xf0 | std::min(length - 4, 15u)), static_cast<uint8_t>(40 - 15)};
      for (uint8_t i = 0; i < 40; ++i) block.push_back(static_cast<uint8_t>('!' + i));
      block.push_back(static_cast<uint8_t>(offset));
      block.push_back(0);
      if (length - 4 >= 15) {
        for (uint32_t rest = length - 19;; rest -= 255) {
          block.push_back(static_cast<uint8_t>(std::min(rest, 255u)));
          if (rest < 255) break;
        }
      }
      block.push_back(0x10);
      block.push_back('.');
      blocks.push_back({block, 40 + length + 1});
    }
  }
  for (const auto build : ptxkit::testing::kVariants) expect_as_reference(blocks, build);
}

TEST(Lz4Decompress, LengthsOfManyBytes) {
  // 32 and more bytes of 255: more than the lanes read in one iteration.
  std::vector<Block> blocks;
  for (uint32_t size : {15u + 255 * 31, 15u + 255 * 32, 15u + 255 * 33 + 7}) {
    blocks.push_back(block_of(ptxkit::testing::random_bytes(size, size)));
    blocks.push_back(block_of(Bytes(size, 'z')));
  }
  for (const auto build : ptxkit::testing::kVariants) expect_as_reference(blocks, build);
}

TEST(Lz4Decompress, ASequenceThatTheStagedPartCuts) {
  const auto blocks = ptxkit::testing::blocks_that_the_staged_part_cuts();
  for (const auto build : ptxkit::testing::kVariants) expect_as_reference(blocks, build);
}

// Literals in which no speculative start finds a token, so that lanes are astray until one of them follows the
// sequences alone.
TEST(Lz4Decompress, LongLiteralsThatHideTheTokens) {
  std::vector<Block> blocks;
  for (uint32_t step = 1; step <= 8; ++step) {
    std::vector<ptxkit::testing::Lz4Sequence> sequences;
    for (uint32_t i = 1; i < 60; ++i) {
      const uint32_t literal_count = i % 19 == 18 ? 300 : i * step * 37 % 170;
      sequences.push_back({i == 1 ? 40 : literal_count, 5 + i % 8, 4 + i % 11});
    }
    sequences.push_back({20, 0, 0});
    blocks.push_back(ptxkit::testing::block_of_sequences(sequences));
  }
  for (const auto build : ptxkit::testing::kVariants) expect_as_reference(blocks, build);
}

TEST(Lz4Decompress, EveryStatus) {
  const std::vector<Block> blocks = {
      {{0x00}, 0},
      {{0x11, 'a', 1, 0, 0x00}, 6},
      {{}, 8},
      {{0x20, 'a'}, 8},
      {{0xf0}, 8},
      {{0xf0, 255, 255}, 8},
      {{0x10, 'a', 1}, 8},
      {{0x1f, 'a', 1, 0, 255}, 800},
      {{0x10, 'a', 1, 0}, 8},
      {{0x20, 'a', 'b'}, 1},
      {{0x10, 'a', 1, 0, 0x00}, 4},
      {{0x10, 'a', 0, 0, 0x00}, 8},
      {{0x10, 'a', 2, 0, 0x00}, 8},
      {Bytes(40, 255), 8},  // a length that never ends, over more than one iteration
      {Bytes(33, 255), 8},  // a length that ends exactly after 32 lanes
  };
  for (const auto build : ptxkit::testing::kVariants) expect_as_reference(blocks, build);
}

// Every block with one byte changed or removed. Each has neighbours whose bytes must not change.
TEST(Lz4Decompress, DamagedBlocks) {
  const Bytes raw = matchable_bytes(400, 11);
  const Bytes good = encode(raw);
  std::vector<Block> blocks;
  for (size_t at = 0; at < good.size(); ++at) {
    Bytes changed = good;
    changed[at] = static_cast<uint8_t>(changed[at] ^ (1u << at % 8));
    blocks.push_back({changed, 400});
    changed = good;
    changed[at] = at % 2 ? 0xff : 0;
    blocks.push_back({changed, 400});
    blocks.push_back({Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(at)), 400});
  }
  for (uint32_t capacity : {0u, 1u, 200u, 399u, 401u}) blocks.push_back({good, capacity});
  for (const auto build : ptxkit::testing::kVariants) expect_as_reference(blocks, build);
}

TEST(Lz4Decompress, BatchesThatDoNotFillACta) {
  for (uint32_t count : {1u, 3u, 4u, 5u, 127u}) {
    std::vector<Block> blocks;
    for (uint32_t i = 0; i < count; ++i) blocks.push_back(block_of(matchable_bytes(30 + i, i)));
    expect_as_reference(blocks);
  }
}

TEST(Lz4Decompress, Corpus) {
  PTXKIT_REQUIRE_CORPUS();
  for (const auto& path : ptxkit::testing::corpus_files()) {
    SCOPED_TRACE(path);
    const Bytes file = ptxkit::testing::read_prefix(path, 256 << 10);
    std::vector<Block> blocks;
    for (size_t at = 0; at < file.size(); at += 65536) {
      const auto begin = file.begin() + static_cast<ptrdiff_t>(at);
      blocks.push_back(
          block_of(Bytes(begin, begin + static_cast<ptrdiff_t>(std::min<size_t>(65536, file.size() - at)))));
    }
    expect_as_reference(blocks);
  }
}

}  // namespace
}  // namespace ptxkit::kernels
