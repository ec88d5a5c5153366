// Tests sizes with and without a unit, and words that are not sizes.
#include "support/byte_size.hpp"

#include <utility>

#include <gtest/gtest.h>

namespace ptxkit {
namespace {

TEST(ByteSize, becomes_digits) {
  const std::pair<std::string, std::string> sizes[] = {{"0", "0"},
                                                       {"4096", "4096"},
                                                       {"12B", "12"},
                                                       {"4k", "4096"},
                                                       {"64M", "67108864"},
                                                       {"1MiB", "1048576"},
                                                       {"2gb", "2147483648"},
                                                       {"1T", "1099511627776"},
                                                       {"18446744073709551615", "18446744073709551615"},
                                                       {"16777215T", "18446742974197923840"}};
  for (const auto& [given, expected] : sizes) {
    std::string word = given;
    EXPECT_EQ(byte_size_to_digits(word), "") << given;
    EXPECT_EQ(word, expected) << given;
  }
}

TEST(ByteSize, is_refused_as_it_was_written) {
  for (const std::string given :
       {"", "M", "-1", "+1", "1.5M", "much", "64 M", "1MM", "1iB", "16777216T", "1e9", "18446744073709551616"}) {
    std::string word = given;
    EXPECT_EQ(byte_size_to_digits(word), "expected a size such as 64M, found '" + given + "'");
    EXPECT_EQ(word, given);
  }
}

}  // namespace
}  // namespace ptxkit
