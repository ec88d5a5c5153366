// The scalar Zstandard encoder: libzstd reads every frame, and the ratio is not below that of its level 1.
#include "kernels/zstd/zstd_reference.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <zstd.h>

#include "fkr_tests/cases/corpus.hpp"
#include "kernels/lz4/lz4_compress_reference.hpp"
#include "kernels/lz4/lz4_format.hpp"
#include "kernels/transform_abi.hpp"
#include "kernels/zstd/zstd_choose_reference.hpp"
#include "kernels/zstd/zstd_format.hpp"
#include "kernels/zstd/zstd_literals_reference.hpp"
#include "kernels/zstd/zstd_sequences_reference.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;

Bytes decode_with_libzstd(const Bytes& frame, size_t raw_size) {
  Bytes raw(raw_size + 1);
  const size_t size = ZSTD_decompress(raw.data(), raw.size(), frame.data(), frame.size());
  EXPECT_FALSE(ZSTD_isError(size)) << ZSTD_getErrorName(size);
  raw.resize(ZSTD_isError(size) ? 0 : size);
  return raw;
}

void expect_round_trip(const Bytes& raw) {
  for (const auto& variant : {kChunkVariant, kHighVariant}) {
    for (const bool with_checksum : {false, true}) {
      const Bytes frame = zstd_frame_reference(raw, variant, with_checksum);
      EXPECT_EQ(ZSTD_getFrameContentSize(frame.data(), frame.size()), raw.size());
      EXPECT_TRUE(decode_with_libzstd(frame, raw.size()) == raw) << raw.size() << " bytes, " << variant.name;
    }
  }
}

Bytes literals_section(const Bytes& literals) {
  Bytes section(zstd_literals_bound(literals.size()));
  const auto outcome = zstd_literals_reference(literals, section);
  EXPECT_EQ(outcome.status, StreamStatus::ok);
  section.resize(outcome.size_bytes);
  return section;
}

Bytes sequences_section(const std::vector<ZstdSequence>& sequences) {
  const Bytes packed = zstd_pack(sequences);
  Bytes section(zstd_sequences_bound(packed.size()));
  const auto outcome = zstd_sequences_reference(packed, section);
  EXPECT_EQ(outcome.status, StreamStatus::ok);
  section.resize(outcome.size_bytes);
  return section;
}

// A frame of one block of given literals and sequences. They decode to `raw_size` bytes.
Bytes frame_of(const Bytes& literals, const std::vector<ZstdSequence>& sequences, uint32_t raw_size) {
  Bytes content = literals_section(literals);
  const Bytes rest = sequences_section(sequences);
  content.insert(content.end(), rest.begin(), rest.end());
  const auto header =
      static_cast<uint32_t>(1 | static_cast<uint32_t>(ZstdBlockType::compressed) << 1 | content.size() << 3);
  Bytes frame = {0x28, 0xB5, 0x2F, 0xFD, 0xA0};
  for (const uint32_t value : {raw_size, header}) {
    for (uint32_t byte = 0; byte < (value == raw_size ? 4u : 3u); ++byte)
      frame.push_back(static_cast<uint8_t>(value >> 8 * byte));
  }
  frame.insert(frame.end(), content.begin(), content.end());
  return frame;
}

// What literals and sequences mean, by RFC 8878, 3.1.1.4 and 3.1.1.5.
Bytes execute(const Bytes& literals, const std::vector<ZstdSequence>& sequences) {
  Bytes raw;
  size_t literal = 0;
  std::array<uint32_t, 3> last{};
  for (const ZstdSequence& sequence : sequences) {
    for (uint32_t i = 0; i < sequence.literal_count; ++i) raw.push_back(literals.at(literal++));
    uint32_t offset = sequence.offset_value - kZstdRepeatOffsets;
    if (sequence.offset_value <= kZstdRepeatOffsets) {
      const uint32_t index = sequence.offset_value - 1 + (sequence.literal_count == 0);
      offset = index == 3 ? last[0] - 1 : last.at(index);
      if (index > 1) last[2] = last[1];
      if (index > 0) last = {offset, last[0], last[2]};
    } else {
      last = {offset, last[0], last[1]};
    }
    for (uint32_t i = 0; i < sequence.match_length; ++i) raw.push_back(raw.at(raw.size() - offset));
  }
  raw.insert(raw.end(), literals.begin() + static_cast<ptrdiff_t>(literal), literals.end());
  return raw;
}

TEST(ZstdReference, FramesOfAllHeaderForms) {
  for (const size_t size :
       {0u, 1u, 2u, 255u, 256u, 257u, 65535u, 65536u, 65537u, 65791u, 65792u, 131072u, 131073u, 400000u})
    expect_round_trip(ptxkit::testing::matchable_bytes(size, static_cast<uint32_t>(size)));
}

TEST(ZstdReference, BlocksOfAllTypes) {
  expect_round_trip(ptxkit::testing::mixed_content(400000));
  EXPECT_EQ(zstd_block_reference(Bytes(1000, 'a'), kHighVariant, true), (Bytes{0x43, 0x1F, 0x00, 'a'}));
  const Bytes noise = ptxkit::testing::random_bytes(1000, 1);
  EXPECT_EQ(zstd_block_reference(noise, kHighVariant, false).size(), noise.size() + kZstdBlockHeaderBytes);
}

TEST(ZstdReference, EveryCorpusFile) {
  PTXKIT_REQUIRE_CORPUS();
  for (const auto& path : ptxkit::testing::corpus_files()) {
    SCOPED_TRACE(path.filename());
    expect_round_trip(ptxkit::testing::read_prefix(path, 1 << 20));
  }
}

RC_GTEST_PROP(ZstdReference, AnyBytes, (const Bytes& raw, uint32_t times)) {
  Bytes repeated;
  for (uint32_t i = 0; i <= times % 5; ++i) repeated.insert(repeated.end(), raw.begin(), raw.end());
  const Bytes frame = zstd_frame_reference(repeated, kHighVariant, times % 2 != 0);
  RC_ASSERT(decode_with_libzstd(frame, repeated.size()) == repeated);
}

// The ratio to libzstd -1 on the same blocks, each a frame of its own. kennedy.xls and ptt5 need matches at repeat
// offsets that the parses do not look for.
// Bytes that cost next to nothing by their frequencies cost a bit each as literals.
TEST(ZstdReference, SparseBytesAreMatches) {
  for (const uint32_t distance : {50u, 400u, 5000u}) {
    const Bytes raw = ptxkit::testing::sparse_bytes(kZstdBlockBytes, distance);
    Bytes theirs(ZSTD_compressBound(raw.size()));
    theirs.resize(ZSTD_compress(theirs.data(), theirs.size(), raw.data(), raw.size(), 1));
    for (const auto& variant : {kChunkVariant, kHighVariant}) {
      const Bytes frame = zstd_frame_reference(raw, variant, false);
      EXPECT_TRUE(decode_with_libzstd(frame, raw.size()) == raw);
      EXPECT_LE(frame.size(), theirs.size() * 7 / 4) << variant.name << ", one in " << distance;
    }
  }
}

TEST(ZstdReference, RatioIsAtLeastLibzstds) {
  PTXKIT_REQUIRE_CORPUS();
  double log_sum[2] = {0, 0};
  for (const auto& path : ptxkit::testing::corpus_files()) {
    const Bytes raw = ptxkit::testing::read_prefix(path, 1 << 20);
    size_t theirs = 0, ours[2] = {0, 0};
    for (size_t at = 0; at < raw.size(); at += kZstdBlockBytes) {
      const Bytes block(raw.begin() + static_cast<ptrdiff_t>(at),
                        raw.begin() + static_cast<ptrdiff_t>(std::min<size_t>(raw.size(), at + kZstdBlockBytes)));
      Bytes room(ZSTD_compressBound(block.size()));
      theirs += ZSTD_compress(room.data(), room.size(), block.data(), block.size(), 1);
      ours[0] += zstd_frame_reference(block, kChunkVariant, false).size();
      ours[1] += zstd_frame_reference(block, kHighVariant, false).size();
    }
    for (const size_t i : {0, 1}) log_sum[i] += std::log(static_cast<double>(theirs) / static_cast<double>(ours[i]));
    const double worst = path.filename() == "kennedy.xls" ? 0.77 : path.filename() == "ptt5" ? 0.92 : 1.0;
    EXPECT_GE(static_cast<double>(theirs) / static_cast<double>(ours[1]), worst) << path.filename();
  }
  const auto files = static_cast<double>(ptxkit::testing::corpus_files().size());
  EXPECT_GT(std::exp(log_sum[0] / files), 0.97);
  EXPECT_GT(std::exp(log_sum[1] / files), 1.02);
}

TEST(ZstdLiterals, SectionsOfEveryForm) {
  const auto type_of = [](const Bytes& section) { return static_cast<ZstdLiteralsType>(section[0] & 3); };
  const auto format_of = [](const Bytes& section) { return section[0] >> 2 & 3; };
  EXPECT_EQ(literals_section({}), Bytes{0});
  EXPECT_EQ(literals_section({'a'}), (Bytes{1 | 1 << 3, 'a'}));
  EXPECT_EQ(literals_section({'a', 'b'}), (Bytes{2 << 3, 'a', 'b'}));
  const Bytes run = literals_section(Bytes(70000, 'a'));
  EXPECT_EQ(run, (Bytes{0x0D, 0x17, 0x11, 'a'}));
  for (const auto& [size, format] :
       {std::pair(100u, 0), {1023u, 0}, {1024u, 2}, {16383u, 2}, {16384u, 3}, {131072u, 3}}) {
    Bytes skewed = ptxkit::testing::random_bytes(size, size);
    for (auto& byte : skewed) byte = byte < 200 ? byte % 5 : byte % 32;
    const Bytes section = literals_section(skewed);
    EXPECT_EQ(type_of(section), ZstdLiteralsType::compressed) << size;
    EXPECT_EQ(format_of(section), format) << size;
    EXPECT_TRUE(decode_with_libzstd(frame_of(skewed, {}, size), size) == skewed) << size;
  }
  const Bytes noise = ptxkit::testing::random_bytes(5000, 1);
  EXPECT_EQ(type_of(literals_section(noise)), ZstdLiteralsType::raw);
  EXPECT_EQ(zstd_literals_reference(Bytes(kZstdMaxLiterals + 1), {}).status, StreamStatus::item_too_large);
  Bytes room(literals_section(noise).size() - 1);
  EXPECT_EQ(zstd_literals_reference(noise, room).status, StreamStatus::output_overrun);
}

// The byte of a compressed section that tells how the weights are coded: below 128 by FSE.
TEST(ZstdLiterals, WeightsOfBothForms) {
  Bytes text = ptxkit::testing::fibonacci_bytes(1000);
  EXPECT_GE(literals_section(text)[3], 128);
  for (auto& byte : text) byte = static_cast<uint8_t>(byte * 9 + 100);
  EXPECT_LT(literals_section(text)[3], 128);
  EXPECT_TRUE(decode_with_libzstd(frame_of(text, {}, 1000), 1000) == text);
  // 255 equal weights have neither form.
  EXPECT_EQ(literals_section(ptxkit::testing::ramp_bytes(1024))[0] & 3, static_cast<int>(ZstdLiteralsType::raw));
}

TEST(ZstdLiterals, CodesOfElevenBits) {
  const Bytes deep = ptxkit::testing::fibonacci_bytes(50000);
  EXPECT_TRUE(decode_with_libzstd(frame_of(deep, {}, 50000), 50000) == deep);
}

RC_GTEST_PROP(ZstdSequences, AnySequences, (const std::vector<std::tuple<uint16_t, uint16_t, uint16_t>>& numbers)) {
  Bytes literals(1, 'x');
  std::vector<ZstdSequence> sequences = {
      {1, 3, 1 + kZstdRepeatOffsets}, {0, 3, 2 + kZstdRepeatOffsets}, {0, 3, 3 + kZstdRepeatOffsets}};
  uint32_t size = 10;
  for (const auto& [literal_count, match_length, offset] : numbers) {
    const uint32_t length = kZstdMinMatch + match_length % 2000,
                   count = literal_count % (match_length % 7 == 0 ? 3000 : 20);
    if (size + count + length > kZstdBlockBytes) break;
    for (uint32_t i = 0; i < count; ++i) literals.push_back(static_cast<uint8_t>(i * literal_count));
    const uint32_t value = offset % 4 == 0 ? 1 + offset % 2 : kZstdRepeatOffsets + 1 + offset % size;
    sequences.push_back({count, length, value});
    size += count + length;
  }
  const Bytes raw = execute(literals, sequences);
  RC_ASSERT(decode_with_libzstd(frame_of(literals, sequences, size), size) == raw);
}

TEST(ZstdSequences, TablesOfEveryMode) {
  const auto modes_of = [](const std::vector<ZstdSequence>& sequences) {
    const Bytes section = sequences_section(sequences);
    return section[section[0] < 128 ? 1 : 2] >> 2;
  };
  std::set<int> literal_modes, offset_modes, match_modes;
  const auto take = [&](const std::vector<ZstdSequence>& sequences) {
    const int modes = modes_of(sequences);
    literal_modes.insert(modes >> 4);
    offset_modes.insert(modes >> 2 & 3);
    match_modes.insert(modes & 3);
  };
  take({{1, 4, 4}});
  take(std::vector<ZstdSequence>(200, {20, 40, 5}));
  std::vector<ZstdSequence> uneven;
  for (uint32_t i = 0; i < 500; ++i)
    uneven.push_back({i % 17 == 0 ? 3u : 30u, i % 19 == 0 ? 8u : 70u, i % 23 == 0 ? 9u : 300u});
  take(uneven);
  const std::set<int> all = {0, 1, 2};
  EXPECT_EQ(literal_modes, all);
  EXPECT_EQ(offset_modes, all);
  EXPECT_EQ(match_modes, all);
  EXPECT_EQ(sequences_section({}), Bytes{0});
}

TEST(ZstdSequences, WhatCannotBeCodedIsRefused) {
  Bytes room(1000);
  const auto status_of = [&](const Bytes& packed) { return zstd_sequences_reference(packed, room).status; };
  EXPECT_EQ(status_of(zstd_pack(std::vector<ZstdSequence>{{0, 3, kZstdMaxOffsetValue}})), StreamStatus::ok);
  EXPECT_EQ(status_of(zstd_pack(std::vector<ZstdSequence>{{0, 2, 1}})), StreamStatus::corrupt);
  EXPECT_EQ(status_of(zstd_pack(std::vector<ZstdSequence>{{0, 3, 0}})), StreamStatus::corrupt);
  EXPECT_EQ(status_of(zstd_pack(std::vector<ZstdSequence>{{0, 3, kZstdMaxOffsetValue + 1}})), StreamStatus::corrupt);
  EXPECT_EQ(status_of(Bytes(12, 3)), StreamStatus::input_overrun);
  EXPECT_EQ(status_of(Bytes(size_t{kZstdMaxSequences + 1} * kZstdSequenceBytes)), StreamStatus::item_too_large);
  const Bytes packed = zstd_pack(std::vector<ZstdSequence>(100, {1, 5, 90}));
  Bytes small(sequences_section(std::vector<ZstdSequence>(100, {1, 5, 90})).size() - 1);
  EXPECT_EQ(zstd_sequences_reference(packed, small).status, StreamStatus::output_overrun);
}

TEST(ZstdChoose, RepeatOffsetsAndMatchesThatDoNotPay) {
  // Noise of eight bits a byte, and copies of it at the offsets 100, 200 and 100; the last one repeats.
  Bytes raw = ptxkit::testing::random_bytes(300, 1);
  for (const size_t offset : {100u, 200u, 100u}) {
    for (int i = 0; i < 20; ++i) raw.push_back(raw[raw.size() - offset]);
    raw.push_back(static_cast<uint8_t>(raw.size()));
  }
  const std::vector<Lz4Sequence> matches = {{300, 20, 100}, {1, 20, 200}, {1, 20, 100}};
  const auto parts = zstd_choose_reference(raw, matches);
  EXPECT_EQ(parts.sequences, (std::vector<ZstdSequence>{{300, 20, 103}, {1, 20, 203}, {1, 20, 2}}));
  EXPECT_EQ(parts.literals.size(), 303u);
  EXPECT_TRUE(execute(parts.literals, parts.sequences) == raw);
  // Two symbols: a byte costs a bit, and four of them less than an offset.
  Bytes bits = ptxkit::testing::random_bytes(400, 2);
  for (auto& byte : bits) byte &= 1;
  std::copy(bits.begin(), bits.begin() + 4, bits.begin() + 300);
  const auto without = zstd_choose_reference(bits, std::vector<Lz4Sequence>{{300, 4, 300}});
  EXPECT_TRUE(without.sequences.empty());
  EXPECT_EQ(without.literals, bits);
}

// Without literals before it, a match cannot name the last offset; the values 1 and 2 are the two before it, and 3 is
// the last offset less one.
TEST(ZstdChoose, RepeatOffsetsWithoutLiterals) {
  Bytes raw = ptxkit::testing::random_bytes(300, 1);
  std::vector<Lz4Sequence> matches;
  for (const uint32_t offset : {100u, 150u, 100u, 99u, 99u, 100u}) {
    for (int i = 0; i < 20; ++i) raw.push_back(raw[raw.size() - offset]);
    matches.push_back({matches.empty() ? 300u : 0u, 20, offset});
  }
  const auto parts = zstd_choose_reference(raw, matches);
  std::vector<uint32_t> values;
  for (const auto& sequence : parts.sequences) values.push_back(sequence.offset_value);
  EXPECT_EQ(values, (std::vector<uint32_t>{103, 153, 1, 3, 102, 2}));
  EXPECT_TRUE(execute(parts.literals, parts.sequences) == raw);
}

}  // namespace
}  // namespace ptxkit::kernels
