#include "support/printable.hpp"

#include <algorithm>
#include <cstdio>

namespace ptxkit {
namespace {

bool is_plain(char c) { return c >= 0x20 && c < 0x7f; }

// Fast path: most text is plain ASCII and needs no change.
bool is_plain_text(std::string_view text) { return std::ranges::all_of(text, is_plain); }

std::string shown(std::string_view text, bool keeps_lines) {
  if (is_plain_text(text)) return std::string(text);
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = utf8_character(text);
    const char first = text.front();
    if (is_printable(character) || (keeps_lines && (first == '\n' || first == '\t')))
      result += text.substr(0, character.byte_count);
    else
      result += first == '\t' ? ' ' : '?';
    text.remove_prefix(character.byte_count);
  }
  return result;
}

}  // namespace

Utf8Character utf8_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const size_t byte_count = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < byte_count) return {first, 1, false};
  uint32_t code = first & (0x7fu >> byte_count);
  for (size_t i = 1; i < byte_count; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {first, 1, false};
    code = code << 6 | (byte(i) & 0x3f);
  }
  // Reject overlong forms, surrogates, and values above U+10FFFF.
  const bool is_overlong = (byte_count == 3 && code < 0x800) || (byte_count == 4 && code < 0x10000);
  if (is_overlong || (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff) return {first, 1, false};
  return {code, byte_count, true};
}

bool is_printable(const Utf8Character& character) {
  const uint32_t code = character.code;
  if (!character.is_valid || code < 0x20 || (code >= 0x7f && code <= 0x9f)) return false;
  const bool turns_direction = code == 0x061c || code == 0x200e || code == 0x200f ||
                               (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return !turns_direction && code != 0x2028 && code != 0x2029;
}

std::string printable(std::string_view text) { return shown(text, false); }

std::string printable_path(std::string_view path) {
  return without_commands((path.starts_with("::") ? "./" : "") + printable(path));
}

std::string printable_lines(std::string_view text) { return shown(text, true); }

std::string without_commands(std::string lines) {
  for (size_t at = lines.find("##["); at != lines.npos; at = lines.find("##[", at)) lines[at + 1] = '?';
  for (size_t at = lines.find("::"); at != lines.npos; at = lines.find("::", at + 1)) {
    // Runners ignore blanks before "::".
    const size_t before = at == 0 ? lines.npos : lines.find_last_not_of(" \t", at - 1);
    if (before == lines.npos || lines[before] == '\n') lines[at] = '?';
  }
  return lines;
}

std::string printable_json(std::string text) {
  const auto is_as_it_is = [](char c) { return is_plain(c) || c == '\n' || c == '\t' || c == '\r'; };
  const bool has_command = text.find("##[") != text.npos;
  if (!has_command && std::ranges::all_of(text, is_as_it_is)) return text;
  std::string result;
  result.reserve(text.size() + 16);
  for (std::string_view rest = text; !rest.empty();) {
    const Utf8Character character = utf8_character(rest);
    if (has_command && rest.front() == '[' && result.ends_with("##")) {
      result += "\\u005b";
    } else if (is_as_it_is(rest.front()) || is_printable(character)) {
      result += rest.substr(0, character.byte_count);
    } else {
      // Every unsafe character is in the Basic Multilingual Plane: four digits suffice.
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", character.is_valid ? character.code & 0xffff : 0xfffdu);
      result += escape;
    }
    rest.remove_prefix(character.byte_count);
  }
  return result;
}

}  // namespace ptxkit
