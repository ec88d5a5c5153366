// Tests that brackets are counted as a JSON parser would meet them, in any bytes.
#include "support/json_depth.hpp"

#include <string>

#include <gtest/gtest.h>

namespace ptxkit {
namespace {

TEST(JsonDepth, counts_open_brackets) {
  EXPECT_EQ(json_depth(""), 0u);
  EXPECT_EQ(json_depth("1"), 0u);
  EXPECT_EQ(json_depth("{}"), 1u);
  EXPECT_EQ(json_depth(R"({"a": [1, [2]], "b": {}})"), 3u);
  EXPECT_EQ(json_depth(std::string(1000, '[')), 1000u);
}

TEST(JsonDepth, leaves_strings_out) {
  EXPECT_EQ(json_depth(R"(["[[[", "\"[[", "\\", [0]])"), 2u);
  EXPECT_EQ(json_depth("\"[[["), 0u);
  EXPECT_EQ(json_depth("\"\\"), 0u);
}

TEST(JsonDepth, survives_brackets_that_close_nothing) { EXPECT_EQ(json_depth("]]}[["), 2u); }

}  // namespace
}  // namespace ptxkit
