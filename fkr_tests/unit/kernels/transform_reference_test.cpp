// The scalar references of encoders and decoders: decoding restores the input, and damaged streams get a status.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <gtest/gtest.h>

#include "fkr_tests/cases/transforms.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::TransformPair;

TEST(TransformReference, WhatIsCodedIsDecoded) {
  for (const TransformPair& pair : ptxkit::testing::transform_pairs()) {
    for (const size_t longest : {100u, 40000u}) {
      for (const Bytes& raw : ptxkit::testing::transform_inputs(longest)) {
        const Bytes stream = ptxkit::testing::coded(pair, raw);
        ASSERT_FALSE(stream.empty()) << pair.label << ", " << raw.size();
        Bytes decoded(raw.size());
        const auto outcome = pair.decode(stream, decoded);
        ASSERT_EQ(outcome, (TransformOutcome{StreamStatus::ok, static_cast<uint32_t>(raw.size())}))
            << pair.label << ", " << raw.size() << ": " << status_text(outcome.status);
        ASSERT_TRUE(decoded == raw) << pair.label << ", " << raw.size();
      }
    }
  }
}

TEST(TransformReference, RoomsThatAreTooSmallAreSaid) {
  for (const TransformPair& pair : ptxkit::testing::transform_pairs()) {
    const Bytes raw = ptxkit::testing::matchable_bytes(3000, 5);
    const Bytes stream = ptxkit::testing::coded(pair, raw);
    for (const size_t room : {size_t{0}, stream.size() / 2, stream.size() - 1}) {
      Bytes dst(room);
      EXPECT_EQ(pair.encode(raw, dst).status, StreamStatus::output_overrun) << pair.label << ", " << room;
    }
    Bytes exact(stream.size());
    EXPECT_EQ(pair.encode(raw, exact).status, StreamStatus::ok) << pair.label;
    for (const size_t room : {size_t{0}, raw.size() - 1}) {
      Bytes dst(room);
      EXPECT_EQ(pair.decode(stream, dst).status, StreamStatus::output_overrun) << pair.label << ", " << room;
    }
    Bytes large(kMaxTransformBytes + 1);
    EXPECT_EQ(pair.encode(large, {}).status, StreamStatus::item_too_large);
    const ptxkit::testing::UntouchedRoom larger(pair.largest_coded + 1);
    EXPECT_EQ(pair.decode(larger.bytes(), {}).status, StreamStatus::item_too_large);
  }
}

TEST(TransformReference, StreamsThatAreJustRightOrJustNot) {
  for (const auto& test : ptxkit::testing::decoder_cases()) {
    const auto pairs = ptxkit::testing::transform_pairs();
    const auto pair =
        std::find_if(pairs.begin(), pairs.end(), [&](const auto& p) { return p.decoder == test.decoder; });
    Bytes room(ptxkit::testing::kCaseRoom);
    EXPECT_EQ(status_text(pair->decode(test.stream, room).status), status_text(test.status)) << test.label;
  }
}

// A stream that is cut anywhere is never decoded. A damaged one has a status or decodes to no more than its room.
TEST(TransformReference, DamagedStreams) {
  std::map<std::pair<std::string_view, StreamStatus>, int> met;
  for (const TransformPair& pair : ptxkit::testing::transform_pairs()) {
    std::mt19937 random(static_cast<uint32_t>(pair.label.size()));
    const auto inputs = ptxkit::testing::transform_inputs(1500);
    Bytes room(2000);
    for (const Bytes& raw : inputs) {
      const Bytes good = ptxkit::testing::coded(pair, raw);
      for (size_t size = 0; size < good.size(); size += 1 + size / 20) {
        EXPECT_NE(pair.decode(std::span(good).first(size), room).status, StreamStatus::ok)
            << pair.label << ", " << size;
      }
      for (int i = 0; i < 60; ++i) {
        Bytes bad = good;
        ptxkit::testing::damage(bad, random);
        const Bytes exact(bad.begin(), bad.end());  // of exact size, so that a sanitizer notices a read past the end
        ++met[{pair.decoder, pair.decode(exact, room).status}];
      }
    }
  }
  for (const auto& [what, count] : met) {
    EXPECT_NE(status_text(what.second), "unknown status");
    RecordProperty(std::string(what.first) + " " + std::string(status_text(what.second)), count);
  }
  for (const StreamStatus status : {StreamStatus::input_overrun, StreamStatus::output_overrun, StreamStatus::bad_table,
                                    StreamStatus::bad_lanes, StreamStatus::corrupt}) {
    EXPECT_GT((met[{kRansChunkedDecode, status}]), 0) << status_text(status);
    EXPECT_GT((met[{kRansWarpDecode, status}]), 0) << status_text(status);
    if (status == StreamStatus::bad_lanes) continue;  // their lanes may have any length
    EXPECT_GT((met[{kHuffmanDecode, status}]), 0) << status_text(status);
    EXPECT_GT((met[{kFseDecode, status}]), 0) << status_text(status);
    EXPECT_GT((met[{kLz77Decode, status}]), 0) << status_text(status);
  }
}

std::array<uint32_t, kSymbols> counts_of(std::initializer_list<uint32_t> first) {
  std::array<uint32_t, kSymbols> counts{};
  std::copy(first.begin(), first.end(), counts.begin());
  return counts;
}

TEST(Huffman, LengthsOfKnownCounts) {
  const auto lengths = code_lengths(counts_of({5, 9, 12, 13, 16, 45}));
  EXPECT_EQ(std::vector<uint8_t>(lengths.begin(), lengths.begin() + 6), (std::vector<uint8_t>{4, 4, 3, 3, 3, 1}));
  // A pair of the first two weighs as much as each of the others, which precede it.
  const auto even = code_lengths(counts_of({1, 1, 2, 2}));
  EXPECT_EQ(std::vector<uint8_t>(even.begin(), even.begin() + 4), (std::vector<uint8_t>{2, 2, 2, 2}));
  EXPECT_EQ(code_lengths(counts_of({0, 7}))[1], 1);
  EXPECT_EQ(code_lengths(counts_of({})), (std::array<uint8_t, kSymbols>{}));
}

// Missing units go, one each, to the symbols with the largest remainders, the lowest first. Excess units are taken from
// the largest symbol.
TEST(RansFrequencies, OfKnownCounts) {
  const auto thirds = normalise_frequencies(counts_of({7, 7, 7}), 9);
  EXPECT_EQ(std::vector<uint16_t>(thirds.begin(), thirds.begin() + 3), (std::vector<uint16_t>{171, 171, 170}));
  const auto halves = normalise_frequencies(counts_of({1, 2, 4, 8}), 9);  // 34.1, 68.3, 136.5, 273.1
  EXPECT_EQ(std::vector<uint16_t>(halves.begin(), halves.begin() + 4), (std::vector<uint16_t>{34, 68, 137, 273}));
  std::array<uint32_t, kSymbols> rare;
  rare.fill(1);
  rare[9] = 1000000;
  const auto raised = normalise_frequencies(rare, 9);
  EXPECT_EQ(raised[9], 512 - 255);
  EXPECT_EQ(std::count(raised.begin(), raised.end(), 1), 255);
}

TEST(Huffman, LengthsAreLimitedAndComplete) {
  std::array<uint32_t, kSymbols> counts{};
  uint32_t count = 1, next = 1;
  for (uint32_t s = 0; s < 27; ++s) {
    counts[s] = count;
    count = std::exchange(next, count + next);
    uint32_t size = 0, longest = 0;
    for (const uint8_t length : code_lengths(counts)) {
      if (length != 0) size += (1u << kMaxCodeBits) >> length;
      longest = std::max<uint32_t>(longest, length);
    }
    EXPECT_EQ(longest, std::clamp(s, 1u, kMaxCodeBits)) << s + 1 << " symbols";
    EXPECT_EQ(size, (1u << kMaxCodeBits) >> (s == 0)) << s + 1 << " symbols";
  }
}

TEST(Huffman, ItemsAboveTheLimit) {
  const Bytes raw(kMaxLanedBytes + 1);
  Bytes room(huffman_bound(raw.size()));
  EXPECT_EQ(huffman_encode_reference(raw, room).status, StreamStatus::item_too_large);
  EXPECT_EQ(huffman_encode_reference(std::span(raw).first(kMaxLanedBytes), room).status, StreamStatus::ok);
  EXPECT_EQ(fse_encode_reference(raw, room, {}).status, StreamStatus::item_too_large);
}

TEST(Fse, OptionsOutOfRange) {
  Bytes room(1000);
  for (const uint32_t bits : {0u, 4u, 13u}) {
    EXPECT_EQ(fse_encode_reference(Bytes(10, 'a'), room, {bits}).status, StreamStatus::bad_option);
  }
}

// Within 2 % of the entropy of the bytes, at the default accuracy; Huffman within one bit for each symbol.
TEST(Fse, CloseToTheEntropy) {
  const Bytes raw = ptxkit::testing::matchable_bytes(1 << 16, 3);
  double bits = 0;
  for (const uint32_t count : count_bytes(raw)) {
    if (count != 0) bits -= count * std::log2(static_cast<double>(count) / static_cast<double>(raw.size()));
  }
  Bytes room(fse_bound(raw.size()));
  const uint32_t fse = fse_encode_reference(raw, room, {}).size_bytes;
  const uint32_t huffman = huffman_encode_reference(raw, room).size_bytes;
  EXPECT_LT(fse, 1.02 * bits / 8);
  EXPECT_LT(huffman, 1.02 * bits / 8);
}

TEST(RansChunked, OptionsOutOfRange) {
  const Bytes raw(70000, 'a');
  Bytes room(1 << 20);
  for (const RansChunkedOptions options :
       {RansChunkedOptions{8, 8, 1024}, RansChunkedOptions{15, 8, 1024}, RansChunkedOptions{12, 0, 1024},
        RansChunkedOptions{12, 33, 1024}, RansChunkedOptions{12, 8, 0}, RansChunkedOptions{12, 8, 65536},
        RansChunkedOptions{12, 8, 1}}) {
    EXPECT_EQ(rans_chunked_encode_reference(raw, room, options).status, StreamStatus::bad_option);
  }
}

TEST(RansWarp, OptionsOutOfRange) {
  const Bytes raw(100, 'a');
  Bytes room(1 << 12);
  for (const RansWarpOptions options :
       {RansWarpOptions{8, 14}, RansWarpOptions{13, 14}, RansWarpOptions{12, 7}, RansWarpOptions{12, 21}}) {
    EXPECT_EQ(rans_warp_encode_reference(raw, room, options).status, StreamStatus::bad_option);
  }
}

// At most 1.5 % above the entropy of the bytes.
TEST(RansWarp, CloseToTheEntropy) {
  const Bytes raw = ptxkit::testing::matchable_bytes(1 << 20, 3);
  double bits = 0;
  for (const uint32_t count : count_bytes(raw)) {
    if (count != 0) bits -= count * std::log2(static_cast<double>(count) / static_cast<double>(raw.size()));
  }
  Bytes room(rans_warp_bound(raw.size(), {}));
  EXPECT_LT(rans_warp_encode_reference(raw, room, {}).size_bytes, 1.015 * bits / 8);
}

// The stream of requirement R2 by hand: one chunk of three symbols on one lane.
TEST(RansChunked, TheFormatByHand) {
  const Bytes raw = {'a', 'a', 'b'};
  Bytes stream(1000);
  stream.resize(rans_chunked_encode_reference(raw, stream, {.lanes = 1}).size_bytes);
  ASSERT_EQ(stream.size(), 515u + 2 + 1 + 8);
  EXPECT_EQ(stream[0], 12);
  EXPECT_EQ(stream[1 + 2 * 'a'] | stream[2 + 2 * 'a'] << 8,
            2731);  // two thirds of 4096, and the missing unit
  EXPECT_EQ(stream[1 + 2 * 'b'] | stream[2 + 2 * 'b'] << 8, 1365);
  EXPECT_EQ(stream[513] | stream[514] << 8, 1);  // chunks
  EXPECT_EQ(stream[515] | stream[516] << 8, 3);  // symbols of the chunk
  EXPECT_EQ(stream[517], 1);                     // lanes
  uint32_t state = 65536;
  state = state / 1365 * 4096 + state % 1365 + 2731;  // 'b'
  state = state / 2731 * 4096 + state % 2731;         // 'a'
  state = state / 2731 * 4096 + state % 2731;
  EXPECT_EQ(stream[518] | stream[519] << 8 | stream[520] << 16 | uint32_t{stream[521]} << 24, state);
  EXPECT_EQ(stream[522] | stream[523] | stream[524] | stream[525], 0);  // words
}

// Requirement R2: the default chunk costs at most half a per cent compared with one chunk.
TEST(RansChunked, ChunksCostLittle) {
  const Bytes raw = ptxkit::testing::matchable_bytes(1 << 20, 3);
  const auto size = [&](uint32_t chunk_bytes) {
    const RansChunkedOptions options{.chunk_bytes = chunk_bytes};
    Bytes room(rans_chunked_bound(raw.size(), options));
    return static_cast<double>(rans_chunked_encode_reference(raw, room, options).size_bytes);
  };
  EXPECT_LT(size(RansChunkedOptions{}.chunk_bytes), 1.005 * size(kMaxRansChunkBytes));
}

TEST(RansChunked, AsManyChunksAsThereCanBe) {
  const RansChunkedOptions options{.lanes = 1, .chunk_bytes = 1};
  const Bytes raw = ptxkit::testing::matchable_bytes(kMaxRansChunks, 4);
  Bytes room(rans_chunked_bound(raw.size(), options)), decoded(raw.size());
  const auto outcome = rans_chunked_encode_reference(raw, room, options);
  ASSERT_EQ(outcome.status, StreamStatus::ok);
  room.resize(outcome.size_bytes);
  EXPECT_EQ(rans_chunked_decode_reference(room, decoded).status, StreamStatus::ok);
  EXPECT_TRUE(decoded == raw);
}

}  // namespace
}  // namespace ptxkit::kernels
