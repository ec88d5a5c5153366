// The LZ77 references: what a match is, how good the finders are beside the best match there is, and known answers.
#include "kernels/lz77/lz77_reference.hpp"

#include <gtest/gtest.h>

#include "fkr_tests/corpus.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

void expect_true_matches(const Bytes& raw, const LzMatches& matches, size_t per_position, uint32_t max_offset) {
  for (size_t i = 0; i < matches.size(); ++i) {
    const size_t at = i / per_position;
    const LzMatch& match = matches[i];
    if (match.offset == 0) {
      EXPECT_EQ(match.length, 0u);
      continue;
    }
    ASSERT_LE(match.offset, std::min<size_t>(at, max_offset));
    ASSERT_GE(match.length, kLzMinMatch);
    ASSERT_LE(match.length, std::min<size_t>(kLzMaxMatch, raw.size() - at));
    for (size_t j = 0; j < match.length; ++j) ASSERT_EQ(raw[at + j], raw[at + j - match.offset]);
  }
}

TEST(Lz77Reference, EveryMatchIsTrue) {
  for (const size_t size : {0u, 1u, 2u, 3u, 31u, 32u, 33u, 257u, 4095u, 4096u, 4097u}) {
    const Bytes raw = ptxkit::testing::matchable_bytes(size, 3);
    expect_true_matches(raw, lz77_hash_reference(raw), 1, kLzMaxOffset);
    expect_true_matches(raw, lz77_batch_reference(raw), 1, kLzBatchMaxOffset);
    expect_true_matches(raw, lz77_lazy_reference(lz77_hash_reference(raw)), 1, kLzMaxOffset);
    expect_true_matches(raw, lz77_per_position_reference(raw, 100), 1, 100);
    expect_true_matches(raw, lz77_topk_reference(raw), kLzTopK, kLzMaxOffset);
  }
}

TEST(Lz77Reference, KnownAnswers) {
  const Bytes raw = bytes_of("abcdXabcdeYabcdeZ");
  EXPECT_EQ(lz77_hash_reference(raw)[5], (LzMatch{5, 4, 1}));
  EXPECT_EQ(lz77_hash_reference(raw)[11], (LzMatch{6, 5, 6}));
  EXPECT_EQ(lz77_topk_reference(raw)[11 * kLzTopK], (LzMatch{6, 5, 0}));
  EXPECT_EQ(lz77_topk_reference(raw)[11 * kLzTopK + 1], (LzMatch{11, 4, 0}));
  EXPECT_EQ(lz77_topk_reference(raw)[11 * kLzTopK + 2], (LzMatch{}));
  EXPECT_EQ(lz77_per_position_reference(raw, 6)[11], (LzMatch{6, 5, 0}));
  EXPECT_EQ(lz77_per_position_reference(raw, 5)[11], (LzMatch{}));
  // A longer match one position later, and one longer by two two positions later.
  EXPECT_EQ(lz77_lazy_reference({{1, 5, 7}, {2, 6, 8}, {3, 4, 9}})[0], (LzMatch{0, 0, 7}));
  EXPECT_EQ(lz77_lazy_reference({{1, 5, 7}, {}, {3, 6, 9}})[0], (LzMatch{1, 5, 7}));
  EXPECT_EQ(lz77_lazy_reference({{1, 5, 7}, {}, {3, 7, 9}})[0], (LzMatch{0, 0, 7}));
}

size_t matched_bytes(const Bytes& raw, const LzMatches& matches) {
  const Bytes block = demux_reference(raw, matches);
  return raw.size() - (block[4] | block[5] << 8 | block[6] << 16);
}

// Bytes that matches cover, beside what the best match of each position covers.
void expect_quality(const Bytes& raw) {
  const auto best = static_cast<double>(matched_bytes(raw, lz77_per_position_reference(raw, kLzMaxWindow)));
  EXPECT_GE(static_cast<double>(matched_bytes(raw, lz77_hash_reference(raw))), 0.99 * best);
  EXPECT_GE(static_cast<double>(matched_bytes(raw, lz77_batch_reference(raw))), 0.97 * best);
}

TEST(Lz77Reference, QualityOfGeneratedInput) { expect_quality(ptxkit::testing::matchable_bytes(8000, 1)); }

TEST(Lz77Reference, QualityOfTheCorpus) {
  PTXKIT_REQUIRE_CORPUS();
  for (const auto& path : ptxkit::testing::corpus_files()) {
    SCOPED_TRACE(path);
    expect_quality(ptxkit::testing::read_prefix(path, 4000));
  }
}

}  // namespace
}  // namespace ptxkit::kernels
