// Makes untrusted text (file names, kernel names, messages) safe to show on a terminal, in a log and in JSON.
//
// Unsafe are control characters (C0, DEL and C1, which begin escape sequences), characters that change the direction of
// text (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), the line separators U+2028 and U+2029, and bytes
// that are not valid UTF-8, because a terminal may interpret them as control characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ptxkit {

// The first character of a text, which must not be empty.
struct Utf8Character {
  uint32_t code = 0;
  size_t byte_count = 1;
  bool is_valid = false;  // false: one byte that belongs to no character
};
Utf8Character utf8_character(std::string_view text);

// Whether the character may be shown unchanged.
bool is_printable(const Utf8Character& character);

// One line: `text` with '?' for each unsafe character and a space for each tab.
std::string printable(std::string_view text);

// A path as in printable(), for the start of a line. A path that begins with "::" gets "./" in front, because CI
// runners take a line that begins so for a command.
std::string printable_path(std::string_view path);

// Several lines: as printable(), but line ends and tabs are kept.
std::string printable_lines(std::string_view text);

// Replaces one character of each command that a CI runner would find in `lines` by '?': "::error::what" at the start of
// a line, "##[error]what" anywhere.
std::string without_commands(std::string lines);

// A JSON text with \u escapes in place of the unsafe characters in its strings, so that a parser reads the same values.
// Line ends between values are kept; a byte that is not valid UTF-8 becomes \ufffd. No line is a command for a CI
// runner.
std::string printable_json(std::string text);

}  // namespace ptxkit
