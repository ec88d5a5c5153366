// The set of positions against std::set.
#include "analyzer/flow/position_set.hpp"

#include <set>

#include <gtest/gtest.h>

namespace ptxkit::flow {
namespace {

// The set agrees with one that is searched bit by bit.
TEST(PositionSet, NextFindsWhatWasInsertedAndNotErased) {
  for (const size_t size : {0, 1, 63, 64, 65, 4096, 4097, 300'000}) {
    PositionSet set(size);
    std::set<size_t> expected;
    for (size_t i = 0, at = 7; i < 500 && size > 0; ++i, at = (at * 7919 + 13) % 1'000'003) {
      set.insert(at % size);
      expected.insert(at % size);
      if (i % 3 == 0) {
        set.erase(at / 3 % size);
        expected.erase(at / 3 % size);
      }
      const auto next = expected.lower_bound(at / 5 % size);
      EXPECT_EQ(set.next(at / 5 % size), next == expected.end() ? PositionSet::kNoPosition : *next) << size;
    }
    size_t taken = 0;
    for (size_t at = set.take(size / 2); at != PositionSet::kNoPosition; at = set.take(at + 1))
      taken += expected.erase(at);
    EXPECT_TRUE(expected.empty()) << size;
    EXPECT_EQ(set.next(0), PositionSet::kNoPosition) << size << taken;
  }
}

}  // namespace
}  // namespace ptxkit::flow
