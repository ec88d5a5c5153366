#include "support/printable.hpp"

#include <gtest/gtest.h>

namespace ptxkit {
namespace {

TEST(Printable, ControlBytesAreQuestionMarksAndTabsSpaces) {
  EXPECT_EQ(printable("a\tb\x1b[0m\x7f\n"), "a b?[0m??");
  EXPECT_EQ(printable("na\xc3\xafve.lz4"), "na\xc3\xafve.lz4");
  EXPECT_EQ(printable(""), "");
}

}  // namespace
}  // namespace ptxkit
