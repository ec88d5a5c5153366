// Text of others, as file names, kernel names and messages are, safe to show: on a terminal, in a log, in JSON.
//
// Unsafe are control characters (C0, DEL and C1, with which escape sequences begin), what turns the direction of text
// around (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), the line ends U+2028 and U+2029, and bytes that
// are no UTF-8, because a terminal may take each of them for a control character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ptxkit {

// The first character of a text, which is not empty.
struct Utf8Character {
  uint32_t code = 0;
  size_t byte_count = 1;
  bool is_valid = false;  // false: one byte that is part of no character
};
Utf8Character utf8_character(std::string_view text);

// Whether the character may be shown as it is.
bool is_printable(const Utf8Character& character);

// One line: `text` with '?' for each unsafe character and a space for tabs.
std::string printable(std::string_view text);

// A path as printable has it, at the beginning of a line: one that begins with "::" has "./" in front, because runners
// of CI jobs take such a line for a command.
std::string printable_path(std::string_view path);

// Several lines: as printable, but line ends and tabs stay.
std::string printable_lines(std::string_view text);

// Lines of a log in which nothing is a command to the runner of a CI job, as "::error::what" is at the beginning of a
// line and "##[error]what" anywhere: '?' stands for a character of either.
std::string without_commands(std::string lines);

// A JSON text whose strings hold no unsafe character as such: each becomes its \u escape, so that what a reader gets
// from it is the same. Line ends between values stay; a byte that is no UTF-8 becomes \ufffd. No line of it is a
// command to a runner either.
std::string printable_json(std::string text);

}  // namespace ptxkit
