// Compares the fast CPU transforms with their references: the same bytes and statuses, with each level of vector
// instructions and without.
#include "runtime/codec/coders/coders.hpp"

#include <map>
#include <random>

#include <gtest/gtest.h>

#include "fkr_tests/cases/transforms.hpp"
#include "runtime/codec/coders/features.hpp"

namespace ptxkit::cpu {
namespace {

using kernels::StreamStatus;
using ptxkit::testing::TransformPair;
using ByteVector = ptxkit::testing::Bytes;

struct Fast {
  testing::TransformReference encode, decode;
};

Fast fast_of(const TransformPair& pair) {
  const std::vector<uint32_t>& o = pair.encoder_options;
  if (pair.decoder == kernels::kRansChunkedDecode) {
    return {[o](auto src, auto dst) { return rans_chunked_encode(src, dst, {o[0], o[1], o[2]}); }, rans_chunked_decode};
  }
  if (pair.decoder == kernels::kRansWarpDecode) {
    return {[o](auto src, auto dst) { return rans_warp_encode(src, dst, {o[0], o[1]}); }, rans_warp_decode};
  }
  if (pair.decoder == kernels::kHuffmanDecode) return {huffman_encode, huffman_decode};
  if (pair.decoder == kernels::kFseDecode) {
    return {[o](auto src, auto dst) { return fse_encode(src, dst, {o[0]}); }, fse_decode};
  }
  EXPECT_EQ(pair.decoder, kernels::kLz77Decode);
  return {lz77_encode, lz77_decode};
}

// Runs each test with each level of vector instructions that the CPU has.
class Coders : public ::testing::TestWithParam<Vectors> {
 protected:
  void SetUp() override {
    if (GetParam() > had_) GTEST_SKIP() << "the CPU has no such instructions";
#if defined(__x86_64__)
    vectors = GetParam();
#endif
  }
  void TearDown() override {
#if defined(__x86_64__)
    vectors = had_;
#endif
  }

 private:
  const Vectors had_ = vectors;
};
std::string name_of(const ::testing::TestParamInfo<Vectors>& param) {
  return std::array{"WithoutVectors", "WithAvx2", "WithAvx512"}[static_cast<size_t>(param.param)];
}
INSTANTIATE_TEST_SUITE_P(Cpu, Coders, ::testing::Values(Vectors::none, Vectors::avx2, Vectors::avx512), name_of);

// Runs both with an output of exactly `room` bytes, so that a sanitizer sees an access one byte too far.
void expect_same(const testing::TransformReference& reference, const testing::TransformReference& fast,
                 const ByteVector& src, size_t room) {
  ByteVector expected(room, 0xa5), found(room, 0x5a);
  const TransformOutcome outcome = reference(src, expected);
  ASSERT_EQ(fast(src, found), outcome) << kernels::status_text(outcome.status) << " by the reference, room " << room;
  if (outcome.status != StreamStatus::ok) return;
  expected.resize(outcome.size_bytes);
  found.resize(outcome.size_bytes);
  ASSERT_TRUE(found == expected) << "room " << room;
}

void expect_as_reference(const TransformPair& pair, const ByteVector& raw) {
  SCOPED_TRACE(pair.label + ", " + std::to_string(raw.size()));
  const Fast fast = fast_of(pair);
  const ByteVector stream = testing::coded(pair, raw);
  for (const size_t room : {pair.bound(raw.size()), stream.size(), stream.size() - 1, stream.size() / 2, size_t{0}}) {
    expect_same(pair.encode, fast.encode, raw, room);
  }
  for (const size_t room : {raw.size(), raw.size() + 100, raw.size() - std::min<size_t>(1, raw.size())}) {
    expect_same(pair.decode, fast.decode, stream, room);
  }
}

TEST_P(Coders, EverySize) {
  for (const TransformPair& pair : testing::transform_pairs()) {
    for (const size_t size : {0u, 1u, 2u, 3u, 4u, 5u, 7u, 8u, 31u, 32u, 33u, 257u, 4095u, 4096u, 4097u, 16411u}) {
      expect_as_reference(pair, testing::matchable_bytes(size, 3));
      expect_as_reference(pair, testing::random_bytes(size, 5));
    }
  }
}

TEST_P(Coders, EveryKindOfInput) {
  for (const TransformPair& pair : testing::transform_pairs()) {
    for (const ByteVector& raw : testing::transform_inputs(30000)) expect_as_reference(pair, raw);
  }
}

// Long matches, distant matches, and more candidates than the encoder examines.
TEST_P(Coders, RepeatedInput) {
  for (const TransformPair& pair : testing::transform_pairs()) {
    if (pair.decoder != kernels::kLz77Decode) continue;
    for (const uint32_t period : {1u, 3u, 7u, 13u, 100u, 65535u, 65536u}) {
      ByteVector raw = testing::random_bytes(period, period);
      while (raw.size() < 70000) raw.push_back(raw[raw.size() - period]);
      expect_as_reference(pair, raw);
      for (size_t i = 50; i < raw.size(); i += 97) raw[i] ^= 1;
      expect_as_reference(pair, raw);
    }
  }
}

// An item that needs more memory than a workspace keeps, then smaller ones again.
TEST_P(Coders, LargeItems) {
  for (const TransformPair& pair : testing::transform_pairs()) {
    if (pair.decoder != kernels::kLz77Decode) continue;
    const Fast fast = fast_of(pair);
    for (const size_t size : {700000u, 300000u, 70000u}) {
      const ByteVector raw = testing::matchable_bytes(size, 7);
      expect_same(pair.encode, fast.encode, raw, pair.bound(size));
    }
  }
}

TransformOutcome encode_by_tables(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  if (src.size() > kernels::kMaxTransformBytes) return {StreamStatus::item_too_large, 0};
  const ByteVector block =
      kernels::demux_reference(src, kernels::lz77_lazy_reference(kernels::lz77_table_reference(src)));
  if (block.size() > dst.size()) return {StreamStatus::output_overrun, 0};
  std::copy(block.begin(), block.end(), dst.begin());
  return {StreamStatus::ok, static_cast<uint32_t>(block.size())};
}

void expect_tables_as_reference(const ByteVector& raw) {
  SCOPED_TRACE(raw.size());
  const size_t bound = kernels::lz_block_bound(raw.size());
  for (const size_t room : {bound, bound / 3}) expect_same(encode_by_tables, lz77_encode_fast, raw, room);
}

TEST(FastLz77, IsThatOfTheTables) {
  for (const size_t size : {0u, 1u, 3u, 4u, 7u, 8u, 9u, 31u, 255u, 256u, 257u, 4097u, 65535u, 65543u, 200000u}) {
    expect_tables_as_reference(testing::matchable_bytes(size, 3));
    expect_tables_as_reference(testing::random_bytes(size, 5));
  }
  for (const ByteVector& raw : testing::transform_inputs(30000)) expect_tables_as_reference(raw);
  EXPECT_EQ(lz77_encode_fast(ByteVector(kernels::kMaxTransformBytes + 1), {}).status, StreamStatus::item_too_large);
}

// Distant matches: positions that the kernel's tables of one part do not hold, and positions that are equal modulo
// 65536.
TEST(FastLz77, ForgetsWhatAPartOfTheKernelDoes) {
  for (const uint32_t period : {1u, 7u, 257u, 20000u, 32768u, 40000u, 65535u, 65536u, 65793u}) {
    ByteVector raw = testing::random_bytes(period, period);
    while (raw.size() < 270000) raw.push_back(raw[raw.size() - period]);
    expect_tables_as_reference(raw);
    for (size_t i = 50; i < raw.size(); i += 97) raw[i] ^= 1;
    expect_tables_as_reference(raw);
  }
}

TEST(FastLz77, TheCorpus) {
  PTXKIT_REQUIRE_CORPUS();
  for (const auto& path : testing::corpus_files()) {
    SCOPED_TRACE(path);
    expect_tables_as_reference(testing::read_prefix(path, 300000));
  }
}

TEST_P(Coders, LzBlocksAbove16Mebibytes) {
  const testing::LargeLzBlock large((16 << 20) + 4099);
  for (const TransformPair& pair : testing::transform_pairs()) {
    if (pair.decoder != kernels::kLz77Decode) continue;
    expect_same(pair.decode, fast_of(pair).decode, large.block, large.raw.size());
    ByteVector decoded(large.raw.size());
    EXPECT_EQ(fast_of(pair).decode(large.block, decoded).status, StreamStatus::ok);
    EXPECT_TRUE(decoded == large.raw);
  }
}

TEST_P(Coders, OptionsOutOfRange) {
  ByteVector raw(100, 'a'), room(4000);
  for (const kernels::RansWarpOptions o : {kernels::RansWarpOptions{8, 14}, kernels::RansWarpOptions{12, 21}}) {
    EXPECT_EQ(rans_warp_encode(raw, room, o).status, StreamStatus::bad_option);
  }
  EXPECT_EQ(rans_chunked_encode(raw, room, {15, 8, 100}).status, StreamStatus::bad_option);
  EXPECT_EQ(fse_encode(raw, room, {13}).status, StreamStatus::bad_option);
  raw.resize(kernels::kMaxTransformBytes + 1);
  for (const TransformPair& pair : testing::transform_pairs()) {
    EXPECT_EQ(fast_of(pair).encode(raw, {}).status, StreamStatus::item_too_large) << pair.label;
    const testing::UntouchedRoom larger(pair.largest_coded + 1);
    EXPECT_EQ(fast_of(pair).decode(larger.bytes(), {}).status, StreamStatus::item_too_large) << pair.label;
  }
}

TEST_P(Coders, StreamsThatAreJustRightOrJustNot) {
  for (const auto& test : testing::decoder_cases()) {
    for (const TransformPair& pair : testing::transform_pairs()) {
      if (pair.decoder != test.decoder) continue;
      ByteVector room(testing::kCaseRoom);
      EXPECT_EQ(fast_of(pair).decode(test.stream, room).status, test.status) << test.label;
    }
  }
}

TEST_P(Coders, DamagedStreams) {
  for (const TransformPair& pair : testing::transform_pairs()) {
    SCOPED_TRACE(pair.label);
    const Fast fast = fast_of(pair);
    std::mt19937 random(static_cast<uint32_t>(pair.label.size()));
    std::map<StreamStatus, int> met;
    for (const ByteVector& raw : testing::transform_inputs(6000)) {
      const ByteVector good = testing::coded(pair, raw);
      for (size_t size = 0; size < good.size(); size += 1 + size / 5) {
        ByteVector cut(good.begin(), good.begin() + static_cast<ptrdiff_t>(size));
        expect_same(pair.decode, fast.decode, cut, raw.size());
      }
      for (int i = 0; i < 40; ++i) {
        ByteVector bad = good;
        testing::damage(bad, random);
        bad.shrink_to_fit();
        expect_same(pair.decode, fast.decode, bad, raw.size());
        ByteVector room(raw.size());
        ++met[fast.decode(bad, room).status];
      }
    }
    EXPECT_GT(met[StreamStatus::corrupt], 0);
    EXPECT_GT(met[StreamStatus::input_overrun], 0);
  }
}

TEST_P(Coders, TheCorpus) {
  PTXKIT_REQUIRE_CORPUS();
  for (const auto& path : testing::corpus_files()) {
    SCOPED_TRACE(path);
    for (const TransformPair& pair : testing::transform_pairs()) {
      expect_as_reference(pair, testing::read_prefix(path, pair.decoder == kernels::kLz77Decode ? 100000 : 10000));
    }
  }
}

}  // namespace
}  // namespace ptxkit::cpu
