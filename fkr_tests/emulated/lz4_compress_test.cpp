// The compressors' PTX against their scalar reference: the same bytes, flags and lengths, and no fault, for every kind
// of batch.
#include <gtest/gtest.h>

#include "fkr_tests/emulated/kernel_harness.hpp"
#include "kernels/lz4/lz4_compress_reference.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::matchable_bytes;
using ptxkit::testing::ramp_bytes;
using ptxkit::testing::random_bytes;

ptxkit::testing::Ran expect_as_reference(const Lz4CompressVariant& variant, const std::vector<Bytes>& items,
                                         std::string_view build = "release") {
  const auto image = ptxkit::testing::kernel_image(variant.name, build);
  const auto ran = ptxkit::testing::emulate_compress(image.ptx, variant, items);
  EXPECT_EQ(ran.report, "") << build;
  EXPECT_FALSE(ran.touched_outside || ran.claims_too_much);
  for (size_t i = 0; i < items.size(); ++i) {
    Bytes expected(items[i].size());
    const auto item = lz4_compress_reference(items[i], expected, variant);
    expected.resize(item.size_bytes);
    EXPECT_EQ(ran.codes[i], static_cast<uint32_t>(item.flag)) << "item " << i << " of " << items[i].size() << " bytes";
    EXPECT_EQ(ran.outputs[i], expected) << "item " << i << " of " << items[i].size() << " bytes";
  }
  return ran;
}

// Zero, one repeated byte, i mod 256, noise, pieces; a page that is zero but for its last byte.
std::vector<Bytes> one_of_each(size_t size) {
  std::vector<Bytes> items = {Bytes(size, 0), Bytes(size, 'A'), ramp_bytes(size), random_bytes(size, 1),
                              matchable_bytes(size, 2)};
  items.emplace_back(size, 0);
  items.back().back() = 1;
  return items;
}

TEST(Lz4CompressPage, OneOfEachKind) {
  for (const auto build : ptxkit::testing::kVariants) expect_as_reference(kPageVariant, one_of_each(4096), build);
}

TEST(Lz4CompressPage, FortyTimesA) {
  const auto image = ptxkit::testing::kernel_image(kLz4CompressPage);
  const auto ran = ptxkit::testing::emulate_compress(image.ptx, kPageVariant, {Bytes(40, 'A')});
  ASSERT_EQ(ran.report, "");
  EXPECT_EQ(ran.outputs[0], (Bytes{0x1f, 'A', 1, 0, 15, 0x50, 'A', 'A', 'A', 'A', 'A'}));
}

TEST(Lz4CompressPage, SizesAroundEveryLimit) {
  std::vector<Bytes> items;
  for (size_t size = 0; size < 50; ++size) {
    items.push_back(matchable_bytes(size, static_cast<uint32_t>(size)));
    items.emplace_back(size, 'x');
    items.emplace_back(size, 0);
  }
  for (size_t size : {63, 64, 65, 269, 270, 271, 272, 524, 525, 4093, 4094, 4095}) {
    items.push_back(matchable_bytes(size, static_cast<uint32_t>(size)));
    items.emplace_back(size, 'x');
  }
  for (const auto build : ptxkit::testing::kVariants) expect_as_reference(kPageVariant, items, build);
}

TEST(Lz4CompressPage, BatchesThatDoNotFillACta) {
  for (uint32_t count : {1u, 3u, 4u, 5u, 127u}) {
    std::vector<Bytes> items;
    for (uint32_t i = 0; i < count; ++i) items.push_back(matchable_bytes(60 + i, i));
    expect_as_reference(kPageVariant, items);
  }
}

TEST(Lz4CompressPage, ItemsThatAreTooLargeAreRefused) {
  const auto image = ptxkit::testing::kernel_image(kLz4CompressPage);
  const auto ran =
      ptxkit::testing::emulate_compress(image.ptx, kPageVariant, {Bytes(4097, 'A'), Bytes(4096, 'A'), Bytes(5000, 0)});
  ASSERT_EQ(ran.report, "");
  EXPECT_EQ(ran.codes, (std::vector<uint32_t>{3, 0, 3}));
  EXPECT_TRUE(ran.outputs[0].empty());
  EXPECT_FALSE(ran.touched_outside);
}

// A thousand pages of the three kinds, in mixed order.
TEST(Lz4CompressPage, AThousandMixedPages) {
  std::vector<Bytes> items;
  for (uint32_t i = 0; i < 1000; ++i) {
    switch (i * 7 % 5) {
      case 0:
      case 1:
        items.emplace_back(4096, 0);
        break;
      case 2:
        items.push_back(random_bytes(4096, i));
        break;
      case 3:
        items.push_back(matchable_bytes(4096, i));
        break;
      default:
        items.emplace_back(4096, static_cast<uint8_t>(i | 1));
    }
  }
  const auto ran = expect_as_reference(kPageVariant, items);
  EXPECT_EQ(std::count(ran.codes.begin(), ran.codes.end(), 2u), 400);
  EXPECT_EQ(std::count(ran.codes.begin(), ran.codes.end(), 1u), 200);
  EXPECT_EQ(std::count(ran.codes.begin(), ran.codes.end(), 0u), 400);
}

TEST(Lz4CompressPage, TheOrderOfWarpsDoesNotMatter) {
  const auto image = ptxkit::testing::kernel_image(kLz4CompressPage);
  const auto items = one_of_each(600);
  const auto first = ptxkit::testing::emulate_compress(image.ptx, kPageVariant, items);
  for (uint64_t seed : {1, 2}) {
    emulator::LaunchOptions options;
    options.schedule_seed = seed;
    const auto again = ptxkit::testing::emulate_compress(image.ptx, kPageVariant, items, options);
    EXPECT_EQ(again.report, "");
    EXPECT_EQ(again.outputs, first.outputs);
  }
}

// Splits the first 256 KiB of every corpus file into items.
void expect_corpus_as_reference(const Lz4CompressVariant& variant) {
  for (const auto& path : ptxkit::testing::corpus_files()) {
    SCOPED_TRACE(path);
    const Bytes file = ptxkit::testing::read_prefix(path, 256 << 10);
    std::vector<Bytes> items;
    for (size_t at = 0; at < file.size(); at += variant.max_item_bytes) {
      items.emplace_back(
          file.begin() + static_cast<ptrdiff_t>(at),
          file.begin() + static_cast<ptrdiff_t>(std::min<size_t>(at + variant.max_item_bytes, file.size())));
    }
    expect_as_reference(variant, items);
  }
}

TEST(Lz4CompressPage, Corpus) {
  PTXKIT_REQUIRE_CORPUS();
  expect_corpus_as_reference(kPageVariant);
}

// Tests of both chunk compressors.
class Lz4CompressChunk : public ::testing::TestWithParam<const Lz4CompressVariant*> {};
INSTANTIATE_TEST_SUITE_P(Kernels, Lz4CompressChunk, ::testing::Values(&kChunkVariant, &kHighVariant),
                         [](const auto& variant) { return std::string(variant.param->name); });

TEST_P(Lz4CompressChunk, OneOfEachKind) {
  for (const auto build : ptxkit::testing::kVariants) expect_as_reference(*GetParam(), one_of_each(20000), build);
}

TEST_P(Lz4CompressChunk, TheLargestChunk) {
  // A match at the largest offset, a position near the table's empty value, a long run.
  Bytes far = random_bytes(65536, 4);
  std::copy(far.begin(), far.begin() + 40, far.end() - 60);
  std::fill(far.begin() + 1000, far.begin() + 30000, uint8_t{7});
  expect_as_reference(*GetParam(), {far, Bytes(65535, 'q')});
}

TEST_P(Lz4CompressChunk, SizesAroundEveryLimit) {
  std::vector<Bytes> items;
  for (size_t size : {0, 1, 12, 13, 40, 256, 267, 268, 520, 4096, 4097})
    items.push_back(matchable_bytes(size, static_cast<uint32_t>(size)));
  for (const auto build : ptxkit::testing::kVariants) expect_as_reference(*GetParam(), items, build);
}

TEST_P(Lz4CompressChunk, Corpus) {
  PTXKIT_REQUIRE_CORPUS();
  expect_corpus_as_reference(*GetParam());
}

}  // namespace
}  // namespace ptxkit::kernels
