// A hand-written scanner over a table of character classes. A word with dots or colons (`.shared::cta`) is one token,
// because PTX gives its parts no separate meaning.
#include "analyzer/ptx/lexer.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace ptxkit::ptx {
namespace {

enum : uint8_t { kSpace = 1, kIdentifierStart = 2, kIdentifier = 4, kDigit = 8, kHexDigit = 16 };

constexpr auto make_classes() {
  std::array<uint8_t, 256> classes{};
  for (const char c : {' ', '\t', '\n', '\r', '\v', '\f'}) classes[static_cast<uint8_t>(c)] |= kSpace;
  for (int c = 'a'; c <= 'z'; ++c) classes[c] |= kIdentifierStart | kIdentifier;
  for (int c = 'A'; c <= 'Z'; ++c) classes[c] |= kIdentifierStart | kIdentifier;
  for (int c = '0'; c <= '9'; ++c) classes[c] |= kIdentifier | kDigit | kHexDigit;
  for (int c = 'a'; c <= 'f'; ++c) classes[c] |= kHexDigit;
  for (int c = 'A'; c <= 'F'; ++c) classes[c] |= kHexDigit;
  for (const char c : {'_', '$', '%'}) classes[static_cast<uint8_t>(c)] |= kIdentifierStart;
  for (const char c : {'_', '$'}) classes[static_cast<uint8_t>(c)] |= kIdentifier;
  return classes;
}

constexpr auto kClass = make_classes();

bool is(char c, uint8_t mask) { return (kClass[static_cast<uint8_t>(c)] & mask) != 0; }

// Length of the start of an exponent, "e-5" up to its first digit; 0 where there is none.
Offset exponent_length(const char* text) {
  if (text[0] != 'e' && text[0] != 'E') return 0;
  const bool sign = text[1] == '+' || text[1] == '-';
  return is(text[sign ? 2 : 1], kDigit) ? (sign ? 3 : 2) : 0;
}

// Whether ".5" or ".5e2" starts here, as opposed to a word such as ".1d".
bool starts_fraction(const char* text) {
  if (!is(text[1], kDigit)) return false;
  const char* end = text + 1;
  while (is(*end, kDigit)) ++end;
  return !is(*end, kIdentifier) || exponent_length(end) != 0;
}

// End of a dot word: letters, digits, '_' and '$' joined by "::".
Offset word_end(const char* text, Offset at) {
  for (;;) {
    while (is(text[at], kIdentifier)) ++at;
    if (text[at] != ':' || text[at + 1] != ':' || !is(text[at + 2], kIdentifier)) return at;
    at += 2;
  }
}

}  // namespace

void Lexer::report(DiagnosticKind kind, Offset at, Offset end, std::string message) {
  diagnostics_.push_back({kind, at, end, std::move(message), kNone});
}

void Lexer::skip_line() {
  const size_t newline = text_.find('\n', at_);
  at_ = newline == std::string_view::npos ? static_cast<Offset>(text_.size()) : static_cast<Offset>(newline);
}

// ptxas rejects bytes beyond ASCII, even in comments and strings.
void Lexer::check_ascii(Offset at, Offset end) {
  const auto* found =
      std::find_if(text_.data() + at, text_.data() + end, [](char c) { return static_cast<int8_t>(c) < 0; });
  if (found == text_.data() + end) return;
  const auto where = static_cast<Offset>(found - text_.data());
  report(DiagnosticKind::stray_byte, where, where + 1,
         fmt::format("byte 0x{:02x} is not ASCII", static_cast<uint8_t>(*found)));
}

void Lexer::skip_space() {
  const char* text = text_.data();
  for (;;) {
    while (is(text[at_], kSpace)) ++at_;
    if (text[at_] == '/' && text[at_ + 1] == '/') {
      const Offset start = at_;
      skip_line();
      check_ascii(start, at_);
    } else if (text[at_] == '/' && text[at_ + 1] == '*') {
      const size_t close = text_.find("*/", at_ + 2);
      if (close == std::string_view::npos) {
        report(DiagnosticKind::unclosed_comment, at_, at_ + 2, "comment is never closed, expected '*/'");
        at_ = static_cast<Offset>(text_.size());
        return;
      }
      const Offset start = at_;
      at_ = static_cast<Offset>(close) + 2;
      check_ascii(start, at_);
    } else if (text[at_] == '#' && text[at_ + 1] == ' ' && is(text[at_ + 2], kDigit)) {
      skip_line();  // a line marker of a preprocessor: # 12 "kernel.cu"
    } else {
      return;
    }
  }
}

char Lexer::peek() {
  skip_space();
  return text_.data()[at_];
}

Offset Lexer::opcode_end(Offset after_identifier) const {
  const char* text = text_.data();
  Offset end = after_identifier;
  for (;;) {
    Offset dot = end;
    while (text[dot] == ' ' || text[dot] == '\t') ++dot;
    if (text[dot] != '.' || !is(text[dot + 1], kIdentifier)) return end;
    end = word_end(text, dot + 1);
  }
}

void Lexer::skip_block() {
  const char* text = text_.data();
  unsigned depth = 1;
  while (at_ < text_.size()) {
    switch (text[at_]) {
      case '{':
        ++depth;
        break;
      case '}':
        if (--depth == 0) {
          ++at_;
          return;
        }
        break;
      case '"': {
        const size_t close = text_.find('"', at_ + 1);
        at_ = close == std::string_view::npos ? static_cast<Offset>(text_.size()) - 1 : static_cast<Offset>(close);
        break;
      }
      case '/':
        if (text[at_ + 1] == '/' || text[at_ + 1] == '*') {
          skip_space();
          continue;
        }
        break;
      default:
        break;
    }
    ++at_;
  }
}

// 12, 0x1F, 017, 0b101, each with an optional U; 1.5, 1e-3, 0f3F800000, 0d....
void Lexer::scan_number(Token& token) {
  const char* text = text_.data();
  Offset at = token.at;
  const char second = text[at + 1];
  if (text[at] == '0' && (second == 'x' || second == 'X' || second == 'f' || second == 'F' || second == 'd' ||
                          second == 'D' || second == 'b' || second == 'B')) {
    at += 2;
    while (is(text[at], kIdentifier)) ++at;
  } else {
    while (is(text[at], kDigit)) ++at;
    if (text[at] == '.' && (!is(text[at + 1], kIdentifierStart) || exponent_length(text + at + 1) != 0)) {
      ++at;
      while (is(text[at], kDigit)) ++at;
    }
    at += exponent_length(text + at);
    while (is(text[at], kIdentifier)) ++at;
  }
  token.kind = TokenKind::number;
  token.end = at;
}

Token Lexer::next() {
  for (;;) {
    skip_space();
    const char* text = text_.data();
    const char c = text[at_];
    Token token{TokenKind::punctuation, c, at_, at_ + 1};
    if (is(c, kIdentifierStart)) {
      Offset at = at_ + 1;
      while (is(text[at], kIdentifier)) ++at;
      token.kind = TokenKind::identifier;
      token.end = at;
      if (c == '%' && at == at_ + 1) token.kind = TokenKind::punctuation;  // the remainder operator
    } else if (is(c, kDigit)) {
      scan_number(token);
    } else {
      switch (c) {
        case '.':
          if (starts_fraction(text + at_)) {
            scan_number(token);
          } else if (is(text[at_ + 1], kIdentifier)) {
            token.kind = TokenKind::dot_word;
            token.end = word_end(text, at_ + 1);
          }
          break;
        case ',':
        case ';':
        case ':':
        case '{':
        case '}':
        case '[':
        case ']':
        case '(':
        case ')':
        case '+':
        case '-':
        case '*':
        case '/':
        case '^':
        case '~':
        case '?':
        case '@':
          break;
        case '<':
        case '>':
          if (text[at_ + 1] == c || text[at_ + 1] == '=') ++token.end;
          break;
        case '=':
        case '!':
          if (text[at_ + 1] == '=') ++token.end;
          break;
        case '&':
        case '|':
          if (text[at_ + 1] == c) ++token.end;
          break;
        case '"': {
          const size_t close = text_.find_first_of("\"\n", at_ + 1);
          token.kind = TokenKind::string;
          if (close == std::string_view::npos || text[close] == '\n') {
            token.end =
                close == std::string_view::npos ? static_cast<Offset>(text_.size()) : static_cast<Offset>(close);
            report(DiagnosticKind::unclosed_string, token.at, token.end, "string is not closed on its line");
          } else {
            token.end = static_cast<Offset>(close) + 1;
          }
          check_ascii(token.at, token.end);
          break;
        }
        default: {
          if (c == 0 && at_ >= text_.size()) {
            token.kind = TokenKind::end;
            token.end = at_;
            return token;
          }
          // Report a run of such bytes once, so that a binary file gives few messages.
          Offset end = at_ + 1;
          while (end < text_.size() &&
                 (static_cast<uint8_t>(text[end]) < ' ' || static_cast<uint8_t>(text[end]) > '~') &&
                 text[end] != '\n') {
            ++end;
          }
          report(DiagnosticKind::stray_byte, at_, end,
                 fmt::format("byte 0x{:02x} is not part of any token", static_cast<uint8_t>(c)));
          at_ = end;
          continue;
        }
      }
    }
    at_ = token.end;
    return token;
  }
}

}  // namespace ptxkit::ptx
