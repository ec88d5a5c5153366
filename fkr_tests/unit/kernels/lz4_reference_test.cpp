// The scalar LZ4 against liblz4: each decodes the other's output, and the ratio is not below liblz4's.
#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>
#include <lz4.h>
#include <lz4hc.h>

#include "fkr_tests/cases/corpus.hpp"
#include "kernels/abi.hpp"
#include "kernels/lz4/lz4_compress_reference.hpp"
#include "kernels/lz4/lz4_decompress_reference.hpp"
#include "kernels/lz4/lz4_format.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;

struct Compressed {
  CompressedItem item;
  Bytes bytes;
};

// Compresses into a buffer of exactly the input's size, so that a sanitizer notices any write beyond it.
Compressed compress(const Bytes& raw, const Lz4CompressVariant& variant) {
  Compressed result{{}, Bytes(raw.size())};
  result.item = lz4_compress_reference(raw, result.bytes, variant);
  result.bytes.resize(result.item.size_bytes);
  return result;
}

Bytes decode_with_liblz4(const Bytes& block, size_t raw_size) {
  Bytes raw(raw_size);
  const int size = LZ4_decompress_safe(reinterpret_cast<const char*>(block.data()), reinterpret_cast<char*>(raw.data()),
                                       static_cast<int>(block.size()), static_cast<int>(raw.size()));
  EXPECT_EQ(size, static_cast<int>(raw_size));
  return raw;
}

Bytes decode(const Bytes& block, size_t raw_size) {
  Bytes raw(raw_size);
  const auto item = lz4_decompress_reference(block, raw);
  EXPECT_EQ(item.status, Lz4Status::ok) << status_text(item.status);
  EXPECT_EQ(item.size_bytes, raw_size);
  return raw;
}

void expect_round_trip(const Bytes& raw, const Lz4CompressVariant& variant) {
  const auto compressed = compress(raw, variant);
  switch (compressed.item.flag) {
    case PageFlag::compressed:
      EXPECT_LT(compressed.bytes.size(), raw.size());
      EXPECT_EQ(decode_with_liblz4(compressed.bytes, raw.size()), raw);
      EXPECT_EQ(decode(compressed.bytes, raw.size()), raw);
      break;
    case PageFlag::incompressible:
      EXPECT_EQ(compressed.bytes, raw);
      break;
    case PageFlag::zero:
      EXPECT_EQ(raw, Bytes(raw.size(), 0));
      break;
    case PageFlag::refused:
      FAIL() << "refused " << raw.size() << " bytes";
  }
}

TEST(Lz4Reference, FortyTimesA) {
  const Bytes raw(40, 'A');
  const auto compressed = compress(raw, kPageVariant);
  // One literal, a match of 34 at offset 1, five literals.
  EXPECT_EQ(compressed.bytes, (Bytes{0x1f, 'A', 1, 0, 15, 0x50, 'A', 'A', 'A', 'A', 'A'}));
  expect_round_trip(raw, kPageVariant);
}

TEST(Lz4Reference, FlagsOfTheFourKindsOfPage) {
  EXPECT_EQ(compress(Bytes(4096, 0), kPageVariant).item.flag, PageFlag::zero);
  EXPECT_EQ(compress(Bytes(4096, 0), kPageVariant).item.size_bytes, 0u);
  EXPECT_EQ(compress({}, kPageVariant).item.flag, PageFlag::zero);
  const auto random = compress(ptxkit::testing::random_bytes(4096, 1), kPageVariant);
  EXPECT_EQ(random.item.flag, PageFlag::incompressible);
  EXPECT_EQ(random.item.size_bytes, 4096u);
  EXPECT_EQ(compress(Bytes(4096, 'x'), kPageVariant).item.flag, PageFlag::compressed);
  EXPECT_EQ(compress(Bytes(4097, 'x'), kPageVariant).item.flag, PageFlag::refused);
  Bytes small_room(4095);
  EXPECT_EQ(lz4_compress_reference(Bytes(4096, 'x'), small_room, kPageVariant).flag, PageFlag::refused);
}

TEST(Lz4Reference, AnAlmostZeroPageIsUnderAHundredBytes) {
  Bytes page(4096, 0);
  page.back() = 1;
  EXPECT_LT(compress(page, kPageVariant).bytes.size(), 100u);
  expect_round_trip(page, kPageVariant);
}

TEST(Lz4Reference, EverySmallSizeOfEveryKind) {
  for (size_t size = 0; size <= 300; ++size) {
    expect_round_trip(Bytes(size, 'A'), kPageVariant);
    expect_round_trip(ptxkit::testing::ramp_bytes(size), kPageVariant);
    expect_round_trip(ptxkit::testing::random_bytes(size, 7), kPageVariant);
    expect_round_trip(ptxkit::testing::matchable_bytes(size, static_cast<uint32_t>(size)), kChunkVariant);
    expect_round_trip(ptxkit::testing::matchable_bytes(size, static_cast<uint32_t>(size)), kHighVariant);
  }
}

TEST(Lz4Reference, ChunksUpToTheReachOfAnOffset) {
  for (uint32_t size : {4096u, 65535u, 65536u}) {
    Bytes far = ptxkit::testing::random_bytes(size, 4);
    std::copy(far.begin(), far.begin() + 40, far.end() - 60);
    for (const auto* variant : {&kChunkVariant, &kHighVariant}) {
      for (uint32_t seed : {1u, 2u, 3u}) expect_round_trip(ptxkit::testing::matchable_bytes(size, seed), *variant);
      expect_round_trip(far, *variant);
      expect_round_trip(Bytes(size, 'q'), *variant);
    }
  }
}

// liblz4's total size of a file cut into blocks, with incompressible blocks counted raw. Level 0 is its default
// encoder.
size_t liblz4_size(const Bytes& raw, size_t block, int level) {
  size_t total = 0;
  for (size_t at = 0; at < raw.size(); at += block) {
    const int size = static_cast<int>(std::min(block, raw.size() - at));
    Bytes out(static_cast<size_t>(LZ4_compressBound(size)));
    const char* const from = reinterpret_cast<const char*>(raw.data() + at);
    char* const to = reinterpret_cast<char*>(out.data());
    const int got = level == 0 ? LZ4_compress_default(from, to, size, static_cast<int>(out.size()))
                               : LZ4_compress_HC(from, to, size, static_cast<int>(out.size()), level);
    total += static_cast<size_t>(std::min(size, got));
  }
  return total;
}

// The ratio relative to liblz4's: the geometric mean over the first MiB of each corpus file. No file may be below
// `worst`.
double ratio_relative_to_liblz4(const Lz4CompressVariant& variant, size_t block_bytes, int level, double worst) {
  double log_sum = 0;
  size_t file_count = 0;
  for (const auto& path : ptxkit::testing::corpus_files()) {
    const Bytes file = ptxkit::testing::read_prefix(path, 1 << 20);
    size_t ours = 0;
    for (size_t at = 0; at < file.size(); at += block_bytes) {
      const Bytes raw(file.begin() + at, file.begin() + std::min<size_t>(at + block_bytes, file.size()));
      expect_round_trip(raw, variant);
      ours += compress(raw, variant).bytes.size();
    }
    const double relative = static_cast<double>(liblz4_size(file, block_bytes, level)) / static_cast<double>(ours);
    EXPECT_GT(relative, worst) << path << " at " << block_bytes;
    log_sum += std::log(relative);
    ++file_count;
  }
  const double geometric_mean = std::exp(log_sum / static_cast<double>(file_count));
  ::testing::Test::RecordProperty("ratio_relative_to_liblz4", std::to_string(geometric_mean));
  return geometric_mean;
}

TEST(Lz4Reference, RatioOfPagesIsAtLeastLiblz4s) {
  PTXKIT_REQUIRE_CORPUS();
  EXPECT_GT(ratio_relative_to_liblz4(kPageVariant, kMaxPageBytes, 0, 0.99), 1.02);
}

TEST(Lz4Reference, RatioOfChunksIsAtLeastLiblz4s) {
  PTXKIT_REQUIRE_CORPUS();
  EXPECT_GT(ratio_relative_to_liblz4(kChunkVariant, kMaxChunkBytes, 0, 0.99), 1.04);
}

TEST(Lz4Reference, HighRatioIsCloseToThatOfLiblz4sLevel3) {
  PTXKIT_REQUIRE_CORPUS();
  EXPECT_GT(ratio_relative_to_liblz4(kHighVariant, kMaxPageBytes, 3, 0.87), 0.97);
  EXPECT_GT(ratio_relative_to_liblz4(kHighVariant, kMaxChunkBytes, 3, 0.87), 0.95);
}

DecompressedItem decode_into(const Bytes& block, size_t capacity) {
  Bytes raw(capacity);
  return lz4_decompress_reference(block, raw);
}

TEST(Lz4DecompressReference, OneBlockForEachStatus) {
  EXPECT_EQ(decode_into({0x00}, 0).status, Lz4Status::ok);
  EXPECT_EQ(decode_into({0x10, 'a'}, 1).status, Lz4Status::ok);
  EXPECT_EQ(decode_into({0x11, 'a', 1, 0, 0x00}, 6).size_bytes, 6u);
  EXPECT_EQ(decode_into({}, 8).status, Lz4Status::input_overrun);
  EXPECT_EQ(decode_into({0x20, 'a'}, 8).status, Lz4Status::input_overrun);
  EXPECT_EQ(decode_into({0xf0}, 8).status, Lz4Status::input_overrun);
  EXPECT_EQ(decode_into({0xf0, 255, 255}, 8).status, Lz4Status::input_overrun);
  EXPECT_EQ(decode_into({0x10, 'a', 1}, 8).status, Lz4Status::input_overrun);
  EXPECT_EQ(decode_into({0x1f, 'a', 1, 0, 255}, 800).status, Lz4Status::input_overrun);
  EXPECT_EQ(decode_into({0x10, 'a', 1, 0}, 8).status, Lz4Status::input_overrun) << "ends with a match";
  EXPECT_EQ(decode_into({0x20, 'a', 'b'}, 1).status, Lz4Status::output_overrun);
  EXPECT_EQ(decode_into({0x10, 'a', 1, 0, 0x00}, 4).status, Lz4Status::output_overrun);
  EXPECT_EQ(decode_into({0x10, 'a', 0, 0, 0x00}, 8).status, Lz4Status::offset_zero);
  EXPECT_EQ(decode_into({0x10, 'a', 2, 0, 0x00}, 8).status, Lz4Status::offset_out_of_range);
  EXPECT_EQ(decode_into({0x00}, kMaxBlockBytes + 1).status, Lz4Status::item_too_large);
}

TEST(Lz4DecompressReference, EveryStatusHasItsText) {
  for (uint32_t value = 0; value <= 5; ++value) {
    EXPECT_NE(status_text(static_cast<Lz4Status>(value)), "unknown status") << value;
  }
  EXPECT_EQ(status_text(static_cast<Lz4Status>(6)), "unknown status");
}

TEST(Lz4DecompressReference, ReadsWhatLiblz4Writes) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Bytes raw = ptxkit::testing::matchable_bytes(seed < 18 ? 1000 * seed : 4 << 20, seed);
    Bytes block(static_cast<size_t>(LZ4_compressBound(static_cast<int>(raw.size()))));
    const int size =
        LZ4_compress_default(reinterpret_cast<const char*>(raw.data()), reinterpret_cast<char*>(block.data()),
                             static_cast<int>(raw.size()), static_cast<int>(block.size()));
    block.resize(static_cast<size_t>(size));
    EXPECT_EQ(decode(block, raw.size()), raw) << seed;
  }
}

}  // namespace
}  // namespace ptxkit::kernels
