// lz4_match_page and lz4_encode_page one after the other: the bytes, flags and lengths of the fused compressor's
// reference.
#include <cstring>

#include <gtest/gtest.h>

#include "fkr_tests/emulated/kernel_harness.hpp"
#include "kernels/lz4/lz4_compress_reference.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::KernelArgument;

constexpr uint32_t kStride = kMaxPageBytes + kStrideUnitBytes, kStride16 = kStride / kStrideUnitBytes;

Bytes bytes_of(const std::vector<uint32_t>& words) {
  Bytes bytes(words.size() * sizeof(uint32_t));
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

uint32_t word_at(const Bytes& bytes, size_t index) {
  uint32_t word;
  std::memcpy(&word, bytes.data() + index * sizeof word, sizeof word);
  return word;
}

void expect_as_fused(const std::vector<Bytes>& pages, std::string_view build) {
  const auto count = static_cast<uint32_t>(pages.size());
  const auto grid = kLz4CompressPageShape.grid_blocks(count);
  const auto launch = [&](std::string_view name, const std::vector<KernelArgument>& arguments) {
    const auto ran = ptxkit::testing::emulate_launch(ptxkit::testing::kernel_image(name, build).ptx, name, grid,
                                                     kLz4CompressPageShape.block_threads, arguments);
    EXPECT_EQ(ran.report, "") << name << ' ' << build;
    return ran.buffers;
  };
  Bytes src(count * kStride);
  std::vector<uint32_t> sizes;
  for (size_t i = 0; i < pages.size(); ++i) {
    std::copy(pages[i].begin(), pages[i].end(), src.begin() + static_cast<ptrdiff_t>(i * kStride));
    sizes.push_back(static_cast<uint32_t>(pages[i].size()));
  }
  const auto stride = KernelArgument::number(kStride16), items = KernelArgument::number(count);
  const auto matched =
      launch(kLz4MatchPage, {KernelArgument::input(src), KernelArgument::input(bytes_of(sizes)),
                             KernelArgument::input(Bytes(count * kMaxPageMatches * 8)),
                             KernelArgument::output(count * 4), KernelArgument::output(count), stride, items});
  ASSERT_GE(matched.size(), 5u);
  const auto encoded =
      launch(kLz4EncodePage,
             {KernelArgument::input(src), KernelArgument::input(bytes_of(sizes)), KernelArgument::input(matched[2]),
              KernelArgument::input(matched[3]), KernelArgument::input(Bytes(count * kStride)),
              KernelArgument::output(count * 4), KernelArgument::input(matched[4]), stride, stride, items});
  ASSERT_GE(encoded.size(), 7u);
  for (size_t i = 0; i < pages.size(); ++i) {
    Bytes expected(pages[i].size());
    const auto reference = lz4_compress_reference(pages[i], expected, kPageVariant);
    expected.resize(reference.size_bytes);
    EXPECT_EQ(encoded[6][i], static_cast<uint8_t>(reference.flag)) << i;
    ASSERT_EQ(word_at(encoded[5], i), reference.size_bytes) << i;
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), encoded[4].begin() + static_cast<ptrdiff_t>(i * kStride)))
        << i;
  }
}

TEST(Lz4TwoPhase, BytesOfTheFusedCompressor) {
  for (const auto build : ptxkit::testing::kVariants) {
    std::vector<Bytes> pages = {Bytes(4096, 0),
                                Bytes(4096, 'A'),
                                ptxkit::testing::ramp_bytes(4096),
                                ptxkit::testing::random_bytes(4096, 1),
                                Bytes(40, 'A'),
                                {}};
    for (uint32_t seed = 0; seed < 20; ++seed)
      pages.push_back(ptxkit::testing::matchable_bytes(seed % 4 == 0 ? 200 * seed + 13 : 4096, seed));
    expect_as_fused(pages, build);
  }
}

TEST(Lz4TwoPhase, Corpus) {
  PTXKIT_REQUIRE_CORPUS();
  std::vector<Bytes> pages;
  for (const auto& path : ptxkit::testing::corpus_files()) {
    const Bytes file = ptxkit::testing::read_prefix(path, 32 << 10);
    for (size_t at = 0; at < file.size(); at += kMaxPageBytes) {
      pages.emplace_back(file.begin() + static_cast<ptrdiff_t>(at),
                         file.begin() + static_cast<ptrdiff_t>(std::min<size_t>(at + kMaxPageBytes, file.size())));
    }
  }
  expect_as_fused(pages, "release");
}

TEST(Lz4TwoPhase, PagesThatAreTooLargeAreRefused) {
  // The first kernel refuses the page; the second leaves that as it is.
  const auto stride = KernelArgument::number(kStride16), one = KernelArgument::number(1);
  const Bytes size = bytes_of({kMaxPageBytes + 1});
  const auto matched = ptxkit::testing::emulate_launch(
      ptxkit::testing::kernel_image(kLz4MatchPage).ptx, kLz4MatchPage, 1, kLz4CompressPageShape.block_threads,
      {KernelArgument::input(Bytes(kStride)), KernelArgument::input(size), KernelArgument::output(kMaxPageMatches * 8),
       KernelArgument::output(4), KernelArgument::output(1), stride, one});
  ASSERT_EQ(matched.report, "");
  EXPECT_EQ(matched.buffers[4][0], static_cast<uint8_t>(PageFlag::refused));
  EXPECT_EQ(word_at(matched.buffers[3], 0), 0u);
  const auto encoded = ptxkit::testing::emulate_launch(
      ptxkit::testing::kernel_image(kLz4EncodePage).ptx, kLz4EncodePage, 1, kLz4CompressPageShape.block_threads,
      {KernelArgument::input(Bytes(kStride)), KernelArgument::input(size), KernelArgument::output(kMaxPageMatches * 8),
       KernelArgument::input(matched.buffers[3]), KernelArgument::output(kStride), KernelArgument::output(4),
       KernelArgument::input(matched.buffers[4]), stride, stride, one});
  ASSERT_EQ(encoded.report, "");
  EXPECT_EQ(encoded.buffers[6][0], static_cast<uint8_t>(PageFlag::refused));
  EXPECT_EQ(word_at(encoded.buffers[5], 0), 0u);
}

}  // namespace
}  // namespace ptxkit::kernels
