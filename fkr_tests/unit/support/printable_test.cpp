#include "support/printable.hpp"

#include <gtest/gtest.h>

namespace ptxkit {
namespace {

TEST(Printable, ControlBytesAreQuestionMarksAndTabsSpaces) {
  EXPECT_EQ(printable("a\tb\x1b[0m\x7f\n"), "a b?[0m??");
  EXPECT_EQ(printable("na\xc3\xafve.lz4"), "na\xc3\xafve.lz4");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, CharactersThatTurnTextAroundAreQuestionMarks) {
  for (const char* character : {"\u061c", "\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e",
                                "\u2066", "\u2067", "\u2068", "\u2069", "\u2028", "\u2029"}) {
    EXPECT_EQ(printable(std::string("a") + character + "b"), "a?b") << character;
  }
  // The neighbouring code points are printable.
  for (const char* character : {"\u061b", "\u200d", "\u2010", "\u2027", "\u202f", "\u2065", "\u206a", "\U0001f600"}) {
    EXPECT_EQ(printable(character), character);
  }
}

TEST(Printable, SecondControlSetIsQuestionMarks) {
  EXPECT_EQ(printable("a\xc2\x80z\xc2\x9b"
                      "31m\xc2\x9f"),
            "a?z?31m?");
  EXPECT_EQ(printable("\xc2\xa0"), "\xc2\xa0");
}

TEST(Printable, BytesThatAreNoUtf8AreQuestionMarks) {
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "?31m");                                 // the one-byte form of ESC [
  EXPECT_EQ(printable("\xc0\x9b"), "??");            // overlong
  EXPECT_EQ(printable("\xe0\x82\x9b"), "???");       // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "???");       // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "????");  // above U+10FFFF
  EXPECT_EQ(printable("\xe2\x80"), "??");            // truncated
  EXPECT_EQ(printable("\xe2\x80"
                      "a"),
            "??a");
  EXPECT_EQ(printable("\xff\xfe"), "??");
}

TEST(Printable, PathsAreNoCommandsOfRunners) {
  EXPECT_EQ(printable_path("::error::k.ptx"), "./::error::k.ptx");
  EXPECT_EQ(printable_path("a::b\n.ptx"), "a::b?.ptx");
}

TEST(Printable, LogsHoldNoCommands) {
  EXPECT_EQ(without_commands("::error::x\n \t::notice::y\na ::b:: ::\n"), "?:error::x\n \t?:notice::y\na ::b:: ::\n");
  EXPECT_EQ(without_commands("a ##[error]x ##[\n"), "a #?[error]x #?[\n");
  EXPECT_EQ(without_commands("::::"), "?:::");
  EXPECT_EQ(without_commands(""), "");
  EXPECT_EQ(printable_json("\"##[add-mask]x\""), "\"##\\u005badd-mask]x\"");
}

TEST(Printable, LinesKeepLineEndsAndTabs) { EXPECT_EQ(printable_lines("a\n\tb\r\x1b\u202e\n"), "a\n\tb???\n"); }

TEST(Printable, JsonGetsEscapesThatMeanTheSame) {
  EXPECT_EQ(printable_json("{\n  \"na\xc3\xafve\": \"\u202e\x7f\xc2\x9b\"\n}"),
            "{\n  \"na\xc3\xafve\": \"\\u202e\\u007f\\u009b\"\n}");
  EXPECT_EQ(printable_json("\"\xff\""), "\"\\ufffd\"");
  EXPECT_EQ(printable_json("{}"), "{}");
}

TEST(Printable, NothingUnsafeIsLeftOfAnyText) {
  // Every pair of bytes and every UTF-8 character becomes printable, and does not change the second time.
  const auto check = [](const std::string& text) {
    const std::string once = printable(text);
    for (std::string_view rest = once; !rest.empty();) {
      const Utf8Character character = utf8_character(rest);
      ASSERT_TRUE(is_printable(character));
      rest.remove_prefix(character.byte_count);
    }
    ASSERT_EQ(printable(once), once);
  };
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      check({static_cast<char>(first), static_cast<char>(second)});
      check({'\xe2', static_cast<char>(first), static_cast<char>(second)});
    }
  }
}

}  // namespace
}  // namespace ptxkit
