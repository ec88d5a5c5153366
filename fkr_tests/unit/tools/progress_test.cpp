#include "tools/ptx-pack/progress.hpp"

#include <gtest/gtest.h>

namespace ptxkit::pack {
namespace {

TEST(ProgressText, OfAFileSaysHowMuchHowFastAndHowLongYet) {
  EXPECT_EQ(progress_text("a", 700'000'000, true, 175'000'000, 700'000, 0.5),
            "a: 25 % of 700.0 MB, 350 MB/s, ratio 250.00, 0:02 left");
  EXPECT_EQ(progress_text("a", 8'000'000'000, true, 1'000'000'000, 500'000'000, 10),
            "a: 12 % of 8000.0 MB, 100 MB/s, ratio 2.00, 1:10 left");
}

TEST(ProgressText, OfAFileThatIsDoneHasNothingLeft) {
  EXPECT_EQ(progress_text("a", 3'000'000, true, 3'000'000, 1'000'000, 2), "a: 100 % of 3.0 MB, 2 MB/s, ratio 3.00");
}

TEST(ProgressText, DecompressingCountsTheStoredSide) {
  EXPECT_EQ(progress_text("a.lz4", 2'000'000, false, 3'000'000, 1'000'000, 1),
            "a.lz4: 50 % of 2.0 MB, 3 MB/s, ratio 3.00, 0:01 left");
}

TEST(ProgressText, OfAPipeKnowsNoEnd) {
  EXPECT_EQ(progress_text("standard input", std::nullopt, true, 1'500'000, 500'000, 1),
            "standard input: 1.5 MB, 2 MB/s, ratio 3.00");
  EXPECT_EQ(progress_text("standard input", 0, true, 1'500'000, 500'000, 1),
            "standard input: 1.5 MB, 2 MB/s, ratio 3.00");
}

}  // namespace
}  // namespace ptxkit::pack
