#include "support/saturating.hpp"

#include <gtest/gtest.h>

namespace ptxkit {
namespace {

constexpr uint64_t kMost = ~uint64_t{0};

TEST(Saturating, ProductsThatDoNotFitAreTheLargestNumber) {
  EXPECT_EQ(saturating_product(6, 7), 42u);
  EXPECT_EQ(saturating_product(0xffffffff, 0xffffffff), 0xfffffffe00000001u);
  EXPECT_EQ(saturating_product(0xffffffff, 0xffffffff, 2), kMost);
  EXPECT_EQ(saturating_product(0x80000000, 0x80000000, 4), kMost);  // 2^64, which wraps to 0
  EXPECT_EQ(saturating_product(kMost, kMost), kMost);
  EXPECT_EQ(saturating_product(kMost, 1, 1), kMost);
}

TEST(Saturating, AFactorOfZeroWins) {
  EXPECT_EQ(saturating_product(0, kMost), 0u);
  EXPECT_EQ(saturating_product(kMost, kMost, 0), 0u);
  EXPECT_EQ(saturating_product(kMost, 0, kMost), 0u);
}

TEST(Saturating, Sums) {
  EXPECT_EQ(saturating_sum(1, 2), 3u);
  EXPECT_EQ(saturating_sum(kMost, 1), kMost);
  EXPECT_EQ(saturating_sum(kMost, 0), kMost);
}

}  // namespace
}  // namespace ptxkit
