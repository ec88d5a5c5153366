// Match finders and demux as PTX: the references' results for every position.
#include <gtest/gtest.h>

#include "fkr_tests/cases/lz77_cases.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::emulator_launch;

TEST(Lz77, AwkwardSizes) {
  for (const auto build : ptxkit::testing::kVariants) {
    for (const size_t size : {1u, 2u, 3u, 4u, 31u, 32u, 33u, 257u}) {
      SCOPED_TRACE(size);
      expect_lz77_as_reference(emulator_launch(build), ptxkit::testing::matchable_bytes(size, 1), 40);
    }
  }
}

TEST(Lz77, AroundTheEndOfASegment) {
  for (const size_t size : {4095u, 4096u, 4097u}) {
    SCOPED_TRACE(size);
    expect_lz77_as_reference(emulator_launch("release"), ptxkit::testing::matchable_bytes(size, 2), 0);
  }
}

TEST(Lz77, RunsNoiseAndEverythingInBetween) {
  // 64 literals fill their flag words exactly.
  for (const Bytes& raw : {Bytes(200, 'x'), ptxkit::testing::random_bytes(300, 1), ptxkit::testing::random_bytes(64, 1),
                           ptxkit::testing::ramp_bytes(400), ptxkit::testing::fibonacci_bytes(150)}) {
    expect_lz77_as_reference(emulator_launch("debug"), raw, kLzMaxWindow + 1);
  }
}

TEST(Lz77, TheLastCandidateAndTheFarthest) {
  for (const uint32_t between : {15u, 16u, 63u, 64u}) {
    SCOPED_TRACE(between);
    expect_lz77_as_reference(emulator_launch("release"), ptxkit::testing::far_candidate(between), 300);
  }
  // The links are the reference's, since computing them takes the emulator long.
  for (const uint32_t distance : {kLzBatchMaxOffset, kLzBatchMaxOffset + 1, kLzMaxOffset, kLzMaxOffset + 1}) {
    SCOPED_TRACE(distance);
    const Bytes raw = ptxkit::testing::far_match(distance);
    ptxkit::testing::Lz77OnDevice device(emulator_launch("release"), raw);
    const Bytes links = ptxkit::testing::bytes_of_matches(lz77_link_reference(raw));
    EXPECT_TRUE(ptxkit::testing::matches_of(device.find(kLz77Hash, links, 1)) == lz77_hash_reference(raw));
    EXPECT_TRUE(ptxkit::testing::matches_of(device.find(kLz77Batch, links, kLzBatchPositions)) ==
                lz77_batch_reference(raw));
    EXPECT_TRUE(ptxkit::testing::matches_of(device.topk(links)) == lz77_topk_reference(raw));
  }
}

TEST(Lz77, TwoBlocksOfOneLaunch) {
  for (const auto build : ptxkit::testing::kVariants) {
    for (const size_t shorter : {97u, 0u}) {
      expect_finders_take_blocks(emulator_launch(build), ptxkit::testing::matchable_bytes(300, 1),
                                 ptxkit::testing::matchable_bytes(shorter, 2), 40);
    }
  }
}

// Parts of a block, each with the bytes before it; long runs, whose lengths lanes derive from each other.
TEST(Lz77, PartsOfATable) {
  Bytes mixed = ptxkit::testing::matchable_bytes(kLzTablePart + 3000, 5);
  std::fill_n(mixed.begin() + kLzTablePart - 1000, 2000, 'x');
  for (const Bytes& raw : {mixed, ptxkit::testing::matchable_bytes(2 * kLzTablePart + 9, 6)}) {
    ptxkit::testing::Lz77OnDevice device(emulator_launch("release"), raw);
    EXPECT_TRUE(ptxkit::testing::matches_of(device.table()) == lz77_table_reference(raw));
  }
}

// A match longer by one and by two, at each of the two positions to which a match may give way.
TEST(Lz77, WhatAMatchGivesWayTo) {
  for (const LzMatches& matches :
       {LzMatches{{1, 5, 7}, {2, 5, 8}, {3, 4, 9}}, LzMatches{{1, 5, 7}, {2, 6, 8}, {3, 4, 9}},
        LzMatches{{1, 5, 7}, {}, {3, 6, 9}}, LzMatches{{1, 5, 7}, {}, {3, 7, 9}}}) {
    const Bytes raw(matches.size());
    ptxkit::testing::Lz77OnDevice device(emulator_launch("release"), raw);
    const Bytes resolved = device.lazy(ptxkit::testing::bytes_of_matches(matches));
    EXPECT_TRUE(ptxkit::testing::matches_of(resolved) == lz77_lazy_reference(matches));
  }
}

}  // namespace
}  // namespace ptxkit::kernels
