// Test cases of the block codecs as kernels, for every machine: bytes and verdicts must equal those of the CPU's code.
#pragma once

#include <random>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/ptz_codecs.hpp"
#include "fkr_tests/cases/recording_machine.hpp"
#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/format/codecs.hpp"
#include "runtime/codec/format/zstd_frame.hpp"

namespace ptxkit::testing {

inline void expect_blocks_as_on_the_cpu(codec::BlockCoder& kernels, const format::PtzCoding& codec,
                                        const std::vector<Bytes>& raws,
                                        codec::MatchSearch search = codec::MatchSearch::chains) {
  std::vector<codec::BlockToEncode> to_encode;
  for (const Bytes& raw : raws) to_encode.push_back({raw});
  const auto encoded = kernels.encode(codec, to_encode, search);
  ASSERT_TRUE(encoded.has_value()) << encoded.error().message();
  std::vector<Bytes> rooms;
  std::vector<codec::BlockToDecode> to_decode;
  for (size_t i = 0; i < raws.size(); ++i) {
    EXPECT_TRUE(to_encode[i].coded == codec::encode_block(codec, raws[i], search)) << "block of " << raws[i].size();
    rooms.emplace_back(raws[i].size());
  }
  for (size_t i = 0; i < raws.size(); ++i) {
    if (!to_encode[i].coded.empty()) to_decode.push_back({to_encode[i].coded, rooms[i]});
  }
  const auto decoded = kernels.decode(codec, to_decode);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message();
  for (size_t i = 0, block = 0; i < raws.size(); ++i) {
    if (to_encode[i].coded.empty()) continue;
    EXPECT_TRUE(to_decode[block++].good && rooms[i] == raws[i]) << "block of " << raws[i].size();
  }
}

// For each size, codes and decodes three equal blocks and three unequal ones. The regions of each launch must be those
// that its kernel declares (recording_machine.hpp). `launches` are those of the machine of `kernels`.
inline void expect_declared_blocks(codec::BlockCoder& kernels, const format::PtzCoding& codec,
                                   std::vector<RecordedLaunch>& launches, uint32_t major, uint32_t minor,
                                   const std::vector<size_t>& sizes) {
  launches.clear();
  for (const size_t size : sizes) {
    SCOPED_TRACE(size);
    expect_blocks_as_on_the_cpu(kernels, codec, std::vector<Bytes>(3, matchable_bytes(size, 1)));
    expect_blocks_as_on_the_cpu(kernels, codec,
                                {matchable_bytes(size, 1), random_bytes(size / 2, 1), Bytes(size / 3, 0)});
    if (!format::row_of(codec).has_match_search()) continue;
    expect_blocks_as_on_the_cpu(kernels, codec, std::vector<Bytes>(3, matchable_bytes(size, 1)),
                                codec::MatchSearch::tables);
  }
  expect_regions_as_declared(launches, major, minor);
}

// What is decoded of an encoded block: a frame of the blocks of a range, or the member.
inline Bytes item_of(const codec::BlockCoding& coding, const Bytes& raw, Bytes coded) {
  Bytes item;
  if (std::holds_alternative<codec::ZstdCoding>(coding)) {
    format::append_zstd_header(20, raw.size(), false, item);
    format::mark_last_zstd_block(coded);
  }
  item.insert(item.end(), coded.begin(), coded.end());
  return item;
}

// The same for blocks of Zstandard or gzip, encoded by `codings` and decoded by `decoding`. `cpu` decodes what the
// kernels encode, too.
inline void expect_declared_items(codec::BlockCoder& kernels, codec::BlockCoder& cpu,
                                  const std::vector<codec::BlockCoding>& codings, const codec::BlockCoding& decoding,
                                  std::vector<RecordedLaunch>& launches, uint32_t major, uint32_t minor,
                                  const std::vector<size_t>& sizes) {
  launches.clear();
  for (const size_t size : sizes) {
    for (const codec::BlockCoding& coding : codings) {
      SCOPED_TRACE(size);
      const std::vector<Bytes> raws = {matchable_bytes(size, 1), random_bytes(size / 2, 1), Bytes(size / 3, 0)};
      std::vector<codec::BlockToEncode> blocks;
      for (const Bytes& raw : raws) blocks.push_back({raw});
      ASSERT_TRUE(kernels.encode(coding, blocks));
      std::vector<Bytes> items;
      for (size_t i = 0; i < raws.size(); ++i) items.push_back(item_of(coding, raws[i], blocks[i].coded));
      for (codec::BlockCoder* coder : {&kernels, &cpu}) {
        std::vector<Bytes> rooms;
        for (const Bytes& raw : raws) rooms.emplace_back(raw.size());
        std::vector<codec::BlockToDecode> coded;
        for (size_t i = 0; i < raws.size(); ++i) coded.push_back({items[i], rooms[i]});
        ASSERT_TRUE(coder->decode(decoding, coded));
        for (size_t i = 0; i < raws.size(); ++i) EXPECT_TRUE(coded[i].good && rooms[i] == raws[i]) << i;
      }
    }
  }
  expect_regions_as_declared(launches, major, minor);
}

// Decodes `count` damaged forms of the coded block of `raw`; outcomes must equal the CPU's.
inline void expect_damage_as_on_the_cpu(codec::BlockCoder& kernels, const format::PtzCoding& codec, const Bytes& raw,
                                        size_t count) {
  const Bytes coded = codec::encode_block(codec, raw);
  ASSERT_FALSE(coded.empty());
  std::mt19937 random(1);
  std::vector<Bytes> damaged(count, coded), rooms(count, Bytes(raw.size()));
  std::vector<codec::BlockToDecode> blocks;
  for (size_t i = 0; i < count; ++i) {
    damaged[i][random() % damaged[i].size()] ^= static_cast<uint8_t>(1 + random() % 255);
    if (i % 4 == 0) damaged[i].resize(random() % damaged[i].size());
    blocks.push_back({damaged[i], rooms[i]});
  }
  const auto decoded = kernels.decode(codec, blocks);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message();
  for (size_t i = 0; i < count; ++i) {
    Bytes expected(raw.size());
    const bool good = codec::decode_block(codec, damaged[i], expected);
    EXPECT_EQ(blocks[i].good, good) << i;
    if (good && blocks[i].good) {
      EXPECT_TRUE(rooms[i] == expected) << i;
    }
  }
}

}  // namespace ptxkit::testing
