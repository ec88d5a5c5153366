// The scalar encoder of Deflate: libdeflate and zlib read every stream, and the ratio is not below that of libdeflate's
// level 1.
#include "kernels/deflate/deflate_reference.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <libdeflate.h>
#include <rapidcheck/gtest.h>
#include <zlib.h>

#include "fkr_tests/cases/corpus.hpp"
#include "kernels/deflate/checksums_reference.hpp"
#include "kernels/deflate/deflate_block_reference.hpp"
#include "kernels/deflate/deflate_tokens_reference.hpp"
#include "kernels/lz4/lz4_format.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;

constexpr DeflateFraming kDeflateFramings[] = {DeflateFraming::raw, DeflateFraming::zlib, DeflateFraming::gzip,
                                               DeflateFraming::bgzf};

Bytes inflate_with_libdeflate(const Bytes& item, size_t raw_size, DeflateFraming framing) {
  Bytes raw(raw_size + 1);
  auto* const decoder = libdeflate_alloc_decompressor();
  const auto decode = framing == DeflateFraming::raw    ? libdeflate_deflate_decompress_ex
                      : framing == DeflateFraming::zlib ? libdeflate_zlib_decompress_ex
                                                        : libdeflate_gzip_decompress_ex;
  size_t read = 0, written = 0;
  EXPECT_EQ(decode(decoder, item.data(), item.size(), raw.data(), raw.size(), &read, &written), LIBDEFLATE_SUCCESS);
  EXPECT_EQ(read, item.size());
  libdeflate_free_decompressor(decoder);
  raw.resize(written);
  return raw;
}

Bytes inflate_with_zlib(const Bytes& item, size_t raw_size, DeflateFraming framing) {
  Bytes raw(raw_size + 1), copy = item;
  z_stream stream{};
  const int window = framing == DeflateFraming::raw ? -15 : framing == DeflateFraming::zlib ? 15 : 31;
  EXPECT_EQ(inflateInit2(&stream, window), Z_OK);
  stream.next_in = copy.data();
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = raw.data();
  stream.avail_out = static_cast<uInt>(raw.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  EXPECT_EQ(stream.avail_in, 0u);
  raw.resize(stream.total_out);
  inflateEnd(&stream);
  return raw;
}

void expect_inflates(const Bytes& item, const Bytes& raw, DeflateFraming framing) {
  EXPECT_TRUE(inflate_with_libdeflate(item, raw.size(), framing) == raw) << raw.size() << " bytes, libdeflate";
  EXPECT_TRUE(inflate_with_zlib(item, raw.size(), framing) == raw) << raw.size() << " bytes, zlib";
}

void expect_deflate_round_trip(const Bytes& raw) {
  for (const auto& variant : {kChunkVariant, kHighVariant}) {
    for (const DeflateFraming framing : kDeflateFramings) {
      if (raw.size() > deflate_max_item_bytes(framing)) continue;
      SCOPED_TRACE(std::string(variant.name) + ", framing " + std::to_string(static_cast<int>(framing)));
      const Bytes item = deflate_reference(raw, variant, framing);
      EXPECT_LE(item.size(), deflate_batch_bound(raw.size(), framing));
      expect_inflates(item, raw, framing);
    }
  }
}

Bytes deflate_part(const Bytes& raw, size_t at, size_t size) {
  return {raw.begin() + static_cast<ptrdiff_t>(at),
          raw.begin() + static_cast<ptrdiff_t>(std::min(raw.size(), at + size))};
}

DeflateBlockType deflate_type(const Bytes& block) { return static_cast<DeflateBlockType>(block[0] >> 1 & 3); }

TEST(DeflateReference, ItemsOfEverySize) {
  for (const size_t size :
       {0u, 1u, 2u, 3u, 11u, 12u, 13u, 16u, 100u, 4095u, 4097u, 32768u, 65279u, 65280u, 65535u, 65536u})
    expect_deflate_round_trip(ptxkit::testing::matchable_bytes(size, static_cast<uint32_t>(size)));
}

TEST(DeflateReference, BlocksOfEveryType) {
  const auto block = [](const Bytes& raw) { return deflate_reference(raw, kHighVariant, DeflateFraming::raw); };
  for (const uint32_t size : {300u, 65535u, 65536u}) {
    const Bytes noise = ptxkit::testing::random_bytes(size, 1);
    EXPECT_EQ(deflate_type(block(noise)), DeflateBlockType::stored);
    EXPECT_EQ(block(noise).size(), noise.size() + (size == 65536 ? 10 : 5));
    expect_deflate_round_trip(noise);
  }
  EXPECT_EQ(block({}), (Bytes{3, 0}));
  const Bytes few = {'a', 'b', 'a', 'c'};
  EXPECT_EQ(deflate_type(block(few)), DeflateBlockType::fixed);
  const Bytes text = ptxkit::testing::matchable_bytes(5000, 1);
  EXPECT_EQ(deflate_type(block(text)), DeflateBlockType::dynamic);
  // One distance code; none; codes of all lengths to 15 bits.
  for (const Bytes& raw : {Bytes(60000, 'x'), ptxkit::testing::mixed_content(65280), ptxkit::testing::ramp_bytes(5000),
                           ptxkit::testing::fibonacci_bytes(65280)})
    expect_deflate_round_trip(raw);
}

// Bytes that cost next to nothing by their frequencies cost a bit each as literals.
TEST(DeflateReference, EqualAndSparseBytesAreMatches) {
  std::vector<Bytes> raws{Bytes(65536, 'x')};
  for (const uint32_t distance : {50u, 400u, 5000u}) raws.push_back(ptxkit::testing::sparse_bytes(65536, distance));
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> fast(
      libdeflate_alloc_compressor(1), libdeflate_free_compressor);
  for (const Bytes& raw : raws) {
    Bytes theirs(libdeflate_deflate_compress_bound(fast.get(), raw.size()));
    theirs.resize(libdeflate_deflate_compress(fast.get(), raw.data(), raw.size(), theirs.data(), theirs.size()));
    for (const auto& variant : {kChunkVariant, kHighVariant}) {
      EXPECT_LE(deflate_reference(raw, variant, DeflateFraming::raw).size(), theirs.size() * 3 / 2) << variant.name;
    }
    expect_deflate_round_trip(raw);
  }
}

TEST(DeflateReference, AMemberOfBgzf) {
  EXPECT_EQ(deflate_reference({}, kHighVariant, DeflateFraming::bgzf), Bytes(kBgzfEnd.begin(), kBgzfEnd.end()));
  const Bytes noise = ptxkit::testing::random_bytes(kBgzfMaxRawBytes, 1);
  const Bytes member = deflate_reference(noise, kHighVariant, DeflateFraming::bgzf);
  EXPECT_LE(member.size(), kBgzfMaxMemberBytes);
  EXPECT_EQ(member[kBgzfSizeAt] | member[kBgzfSizeAt + 1] << 8, member.size() - 1);
}

TEST(DeflateReference, EveryCorpusFile) {
  PTXKIT_REQUIRE_CORPUS();
  for (const auto& path : ptxkit::testing::corpus_files()) {
    SCOPED_TRACE(path.filename());
    const Bytes raw = ptxkit::testing::read_prefix(path, 1 << 20);
    for (size_t at = 0; at < raw.size(); at += kBgzfMaxRawBytes)
      expect_deflate_round_trip(deflate_part(raw, at, kBgzfMaxRawBytes));
  }
}

RC_GTEST_PROP(DeflateReference, AnyBytes, (const Bytes& raw, uint32_t times)) {
  Bytes repeated;
  for (uint32_t i = 0; i <= times % 5; ++i) repeated.insert(repeated.end(), raw.begin(), raw.end());
  const DeflateFraming framing = kDeflateFramings[times / 5 % 4];
  const Bytes item = deflate_reference(repeated, kHighVariant, framing);
  RC_ASSERT(inflate_with_libdeflate(item, repeated.size(), framing) == repeated);
  RC_ASSERT(inflate_with_zlib(item, repeated.size(), framing) == repeated);
}

// The size of libdeflate -1 over ours, 64 KiB at a time, on the first MiB of each file. kennedy.xls and ptt5 have
// columns, in which libdeflate finds the last record at every position; pages.bin is much like them.
TEST(DeflateReference, RatioIsAtLeastLibdeflates) {
  PTXKIT_REQUIRE_CORPUS();
  auto* const encoder = libdeflate_alloc_compressor(1);
  double log_sum[2] = {0, 0};
  for (const auto& path : ptxkit::testing::corpus_files()) {
    const Bytes raw = ptxkit::testing::read_prefix(path, 1 << 20);
    size_t theirs = 0, ours[2] = {0, 0};
    for (size_t at = 0; at < raw.size(); at += kMaxChunkBytes) {
      const Bytes part = deflate_part(raw, at, kMaxChunkBytes);
      Bytes room(libdeflate_deflate_compress_bound(encoder, part.size()));
      theirs += libdeflate_deflate_compress(encoder, part.data(), part.size(), room.data(), room.size());
      ours[0] += deflate_reference(part, kChunkVariant, DeflateFraming::raw).size();
      ours[1] += deflate_reference(part, kHighVariant, DeflateFraming::raw).size();
    }
    for (const size_t i : {0, 1}) {
      const double ratio = static_cast<double>(theirs) / static_cast<double>(ours[i]);
      log_sum[i] += std::log(ratio);
      EXPECT_GE(ratio, i == 0 ? 0.85 : 0.96) << path.filename();
      RecordProperty(path.filename().string() + (i == 0 ? " chunk" : " high"), std::to_string(ratio));
    }
  }
  libdeflate_free_compressor(encoder);
  const auto files = static_cast<double>(ptxkit::testing::corpus_files().size());
  RecordProperty("chunk", std::to_string(std::exp(log_sum[0] / files)));
  RecordProperty("high", std::to_string(std::exp(log_sum[1] / files)));
  EXPECT_GT(std::exp(log_sum[0] / files), 0.93);
  EXPECT_GT(std::exp(log_sum[1] / files), 1.015);
}

TEST(DeflateTokens, LongMatchesAreSplitSoThatNoneIsTooShort) {
  for (uint32_t length = 4; length < 1100; ++length) {
    Bytes raw = ptxkit::testing::random_bytes(8, 1);
    for (uint32_t i = 0; i < length; ++i) raw.push_back(raw[raw.size() - 8]);
    const auto tokens = deflate_tokens_reference(raw, std::vector<Lz4Sequence>{{8, length, 8}});
    ASSERT_EQ(tokens.size(), 8 + deflate_match_count(length)) << length;
    uint32_t sum = 0;
    for (size_t i = 8; i < tokens.size(); ++i) {
      EXPECT_EQ(tokens[i] & kDeflateMatchToken, kDeflateMatchToken);
      EXPECT_EQ(tokens[i] >> kDeflateTokenDistanceShift, 7u);
      sum += (tokens[i] & 255) + kDeflateMinMatch;
    }
    EXPECT_EQ(sum, length);
    expect_inflates(deflate_block_reference(raw, tokens), raw, DeflateFraming::raw);
  }
}

TEST(DeflateTokens, AMatchThatDoesNotPayBecomesLiterals) {
  // Two symbols: a byte costs a bit, and four of them less than a distance.
  Bytes bits = ptxkit::testing::random_bytes(400, 2);
  for (auto& byte : bits) byte &= 1;
  std::copy(bits.begin(), bits.begin() + 4, bits.begin() + 300);
  const auto tokens = deflate_tokens_reference(bits, std::vector<Lz4Sequence>{{300, 4, 300}});
  EXPECT_TRUE(Bytes(tokens.begin(), tokens.end()) == bits);
}

// No match of the parses reaches farther than the format's window.
TEST(DeflateTokens, OffsetsAreWithinTheWindow) {
  Bytes raw = ptxkit::testing::random_bytes(20000, 1);
  const Bytes far = ptxkit::testing::random_bytes(20000, 2);
  raw.insert(raw.end(), far.begin(), far.end());
  raw.insert(raw.end(), raw.begin(), raw.begin() + 20000);
  for (const auto& variant : {kChunkVariant, kHighVariant}) {
    EXPECT_TRUE(lz4_parse_reference(raw, variant, kDeflateWindowBytes).empty());
    EXPECT_FALSE(lz4_parse_reference(raw, variant).empty());
  }
  raw.erase(raw.begin(), raw.begin() + 7232);  // the same bytes again after 32768
  for (const auto& variant : {kChunkVariant, kHighVariant})
    EXPECT_TRUE(lz4_parse_reference(raw, variant, kDeflateWindowBytes).empty());
}

TEST(DeflateBlock, RunsOfLengths) {
  using Fields = std::vector<DeflateLengthField>;
  const auto zeros = [](size_t count) { return deflate_length_fields(Bytes(count)); };
  EXPECT_EQ(zeros(2), (Fields{{0, 0}, {0, 0}}));
  EXPECT_EQ(zeros(3), (Fields{{17, 0}}));
  EXPECT_EQ(zeros(10), (Fields{{17, 7}}));
  EXPECT_EQ(zeros(11), (Fields{{18, 0}}));
  EXPECT_EQ(zeros(139), (Fields{{18, 127}, {0, 0}}));
  EXPECT_EQ(zeros(148), (Fields{{18, 127}, {17, 7}}));
  EXPECT_EQ(zeros(149), (Fields{{18, 127}, {18, 0}}));
  const auto eights = [](size_t count) { return deflate_length_fields(Bytes(count, 8)); };
  EXPECT_EQ(eights(3), (Fields{{8, 0}, {8, 0}, {8, 0}}));
  EXPECT_EQ(eights(4), (Fields{{8, 0}, {16, 0}}));
  EXPECT_EQ(eights(9), (Fields{{8, 0}, {16, 3}, {8, 0}, {8, 0}}));
}

RC_GTEST_PROP(Checksums, AreThoseOfLibdeflate, (const Bytes& bytes)) {
  RC_ASSERT(crc32_reference(bytes) == libdeflate_crc32(0, bytes.data(), bytes.size()));
  RC_ASSERT(adler32_reference(bytes) == libdeflate_adler32(1, bytes.data(), bytes.size()));
}
TEST(Checksums, AreThoseOfLibdeflateForLargeItems) {
  const Bytes bytes(100000, 255);
  EXPECT_EQ(crc32_reference(bytes), libdeflate_crc32(0, bytes.data(), bytes.size()));
  EXPECT_EQ(adler32_reference(bytes), libdeflate_adler32(1, bytes.data(), bytes.size()));
}

}  // namespace
}  // namespace ptxkit::kernels
