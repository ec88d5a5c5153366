// The LZ77 references: valid matches, the quality of the finders compared with the best matches, and known answers.
#include "kernels/lz77/lz77_reference.hpp"

#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/lz77_cases.hpp"
#include "kernels/entropy/rans_warp_reference.hpp"

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
    expect_true_matches(raw, lz77_table_reference(raw), 1, kLzMaxOffset);
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

TEST(Lz77Reference, TheLastCandidateAndTheFarthest) {
  const auto length_of = [](const LzMatches& matches, size_t at) { return matches[at].length; };
  for (const uint32_t between : {14u, 15u, 16u, 62u, 63u, 64u}) {
    const Bytes raw = ptxkit::testing::far_candidate(between);
    const size_t at = raw.size() - 12;
    EXPECT_EQ(length_of(lz77_batch_reference(raw), at), between < kLzBatchMaxLinks ? 12u : 4u) << between;
    EXPECT_EQ(length_of(lz77_hash_reference(raw), at), between < kLzMaxLinks ? 12u : 4u) << between;
    EXPECT_EQ(length_of(lz77_topk_reference(raw), at * kLzTopK), between < kLzMaxLinks ? 12u : 4u) << between;
  }
  for (const uint32_t distance : {kLzBatchMaxOffset, kLzBatchMaxOffset + 1, kLzMaxOffset, kLzMaxOffset + 1}) {
    const Bytes raw = ptxkit::testing::far_match(distance);
    EXPECT_EQ(length_of(lz77_batch_reference(raw), distance), distance <= kLzBatchMaxOffset ? 8u : 0u) << distance;
    EXPECT_EQ(length_of(lz77_hash_reference(raw), distance), distance <= kLzMaxOffset ? 8u : 0u) << distance;
    EXPECT_EQ(length_of(lz77_topk_reference(raw), distance * kLzTopK), distance <= kLzMaxOffset ? 8u : 0u) << distance;
  }
  // The largest distance that positions modulo 65536 distinguish; and, in another part, the bytes before it that enter
  // its tables.
  for (const uint32_t distance : {300u, kLzTableStep, kLzMaxOffset, kLzMaxOffset + 1}) {
    const Bytes raw = ptxkit::testing::far_match(distance);
    EXPECT_EQ(length_of(lz77_table_reference(raw), distance), distance < kLzTableBefore ? 8u : 0u) << distance;
  }
  // With a window as long as the distance, and with one a byte shorter.
  const Bytes raw = ptxkit::testing::far_match(300);
  EXPECT_EQ(length_of(lz77_per_position_reference(raw, 300), 300), 8u);
  EXPECT_EQ(length_of(lz77_per_position_reference(raw, 299), 300), 0u);
}

uint32_t number_at(const Bytes& block, size_t at) {
  return block[at] | block[at + 1] << 8 | block[at + 2] << 16 | uint32_t{block[at + 3]} << 24;
}

// The quality of a parse: the bytes that matches cover, and the size of its streams coded as the codec lzr codes them.
struct Worth {
  size_t matched_bytes, coded_bytes;
};

Worth worth_of(const Bytes& raw, const LzMatches& matches) {
  const Bytes block = demux_reference(raw, matches);
  const size_t literals = number_at(block, 4), match_count = number_at(block, 8), words = number_at(block, 12);
  Worth worth{raw.size() - literals, kLzBlockHeaderBytes};
  size_t at = kLzBlockHeaderBytes;
  for (const size_t size : {4 * words, literals, match_count, match_count, match_count}) {
    Bytes room(size);
    const auto outcome = rans_warp_encode_reference(std::span(block).subspan(at, size), room, {});
    worth.coded_bytes += 4 + (outcome.status == StreamStatus::ok ? outcome.size_bytes : size);
    at += size;
  }
  return worth;
}

LzMatches first_of_each(const LzMatches& candidates) {
  LzMatches matches(candidates.size() / kLzTopK);
  for (size_t i = 0; i < matches.size(); ++i) matches[i] = candidates[i * kLzTopK];
  return matches;
}

// Compares each finder with the best match of every position within 32 KiB, all resolved lazily: at least the given
// share of the bytes that matches cover, and of the ratio of the whole pipeline.
void expect_quality(const Bytes& raw) {
  const Worth best = worth_of(raw, lz77_lazy_reference(lz77_per_position_reference(raw, kLzMaxWindow)));
  const auto expect = [&](const char* finder, const LzMatches& matches, double of_matched, double of_ratio) {
    const Worth worth = worth_of(raw, lz77_lazy_reference(matches));
    EXPECT_GE(static_cast<double>(worth.matched_bytes), of_matched * static_cast<double>(best.matched_bytes)) << finder;
    EXPECT_LE(static_cast<double>(worth.coded_bytes) * of_ratio, static_cast<double>(best.coded_bytes)) << finder;
  };
  expect("lz77_hash", lz77_hash_reference(raw), 0.998, 0.985);
  expect("lz77_topk", first_of_each(lz77_topk_reference(raw)), 0.998, 0.985);
  expect("lz77_table", lz77_table_reference(raw), 0.93, 0.83);
  expect("lz77_batch", lz77_batch_reference(raw), 0.994, 0.98);
}

TEST(Lz77Reference, QualityOfGeneratedInput) { expect_quality(ptxkit::testing::matchable_bytes(16384, 1)); }

TEST(Lz77Reference, QualityOfTheCorpus) {
  PTXKIT_REQUIRE_CORPUS();
  for (const auto& path : ptxkit::testing::corpus_files()) {
    SCOPED_TRACE(path);
    expect_quality(ptxkit::testing::read_prefix(path, 16384));
  }
}

}  // namespace
}  // namespace ptxkit::kernels
