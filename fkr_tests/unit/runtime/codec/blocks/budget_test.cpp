// Where the bytes of blocks go: every byte is counted once, and tables are what their formats say.
#include "runtime/codec/blocks/budget.hpp"

#include <bit>
#include <random>

#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/ptz_codecs.hpp"
#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/blocks/coded_stream.hpp"

namespace ptxkit::codec {
namespace {

using format::PtzCodec;
using format::PtzCoding;
using ByteVector = std::vector<uint8_t>;

TEST(Budget, OfAnLz4Block) {
  Budget budget;
  // A literal, a match of 4 + 15 + 255 + 3, 17 literals.
  ByteVector block = {0x1f, 'x', 1, 0, 255, 3, 0xf0, 2};
  block.insert(block.end(), 17, 'y');
  ASSERT_TRUE(add_lz4_block(block, budget));
  EXPECT_EQ(budget[Part::literals], 18u);
  EXPECT_EQ(budget[Part::lengths], 5u);  // two tokens, three bytes that continue lengths
  EXPECT_EQ(budget[Part::offsets], 2u);
  EXPECT_EQ(budget.total_bytes(), block.size());
  for (size_t size = 0; size < block.size(); ++size) {
    Budget of_cut;
    const bool ends_with_literals = size == 2;  // the first sequence without its match is a block
    EXPECT_EQ(add_lz4_block(format::Bytes(block).first(size), of_cut), ends_with_literals) << size;
  }
}

TEST(Budget, OfEveryCodecCountsEveryByteOnce) {
  const ByteVector raw = testing::mixed_content(60000);
  for (const PtzCoding& coding : testing::ptz_codecs()) {
    const ByteVector block = encode_block(coding, raw);
    ASSERT_FALSE(block.empty());
    Budget budget;
    ASSERT_TRUE(add_ptz_block(coding, block, raw.size(), budget)) << format::name_of(coding);
    EXPECT_EQ(budget.total_bytes(), block.size()) << format::name_of(coding);
    EXPECT_GT(budget[Part::tables], 100u);
    const format::PtzModel model = format::row_of(coding).model;
    for (const Part part : {Part::literals, Part::lengths, Part::offsets, Part::flags})
      EXPECT_EQ(budget[part] != 0, model == format::PtzModel::lz77) << name_of(part);
    for (const Part part : {Part::rows, Part::column})
      EXPECT_EQ(budget[part] != 0, model == format::PtzModel::bwt) << name_of(part);
    EXPECT_EQ(budget[Part::planes] != 0, model == format::PtzModel::planes);
    EXPECT_EQ(budget[Part::rows] % 4, 0u);
  }
}

// Of rANS `warp` what is no table are the words, whose number each chunk states.
TEST(Budget, WhatIsNoTableAreTheWords) {
  const ByteVector raw = testing::matchable_bytes(200000, 1), block = encode_block(PtzCodec::lzr, raw);
  Budget budget;
  ASSERT_TRUE(add_ptz_block(PtzCodec::lzr, block, raw.size(), budget));
  size_t at = kernels::kLzBlockHeaderBytes, words = 0, streams = 0;
  for (const size_t size : lz_stream_sizes(block.data())) {
    format::Bytes content;
    bool is_coded = false;
    ASSERT_TRUE(find_stream(block, at, size, content, is_coded));
    if (!is_coded) {
      words += content.size();
      continue;
    }
    ++streams;
    size_t symbols = 0;
    for (size_t i = 6; i < 38; ++i) symbols += static_cast<size_t>(std::popcount(content[i]));
    for (size_t chunk = 0; chunk * 16384 < size; ++chunk) words += 2 * read_u32(&content[38 + 2 * symbols + 4 * chunk]);
  }
  EXPECT_GT(streams, 2u);
  EXPECT_EQ(budget[Part::literals] + budget[Part::lengths] + budget[Part::offsets] + budget[Part::flags], words);
}

TEST(Budget, OfDamagedBlocksIsRefusedOrCountsEveryByteOnce) {
  std::mt19937 random(1);
  for (const PtzCoding& coding : testing::ptz_codecs()) {
    const ByteVector raw = testing::shrinking_bytes(3000, 5), good = encode_block(coding, raw);
    size_t refused = 0;
    for (int i = 0; i < 3000; ++i) {
      ByteVector bad = good;
      for (auto change = 1 + random() % 3; change != 0; --change)
        bad[random() % std::min<size_t>(bad.size(), 80)] = static_cast<uint8_t>(random());
      if (i % 5 == 0) bad.resize(random() % bad.size());
      bad.shrink_to_fit();
      Budget budget;
      if (add_ptz_block(coding, bad, raw.size(), budget)) {
        ASSERT_EQ(budget.total_bytes(), bad.size());
      } else {
        ++refused;
      }
    }
    EXPECT_GT(refused, 500u) << format::name_of(coding);
  }
}

}  // namespace
}  // namespace ptxkit::codec
