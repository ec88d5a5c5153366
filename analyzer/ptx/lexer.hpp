// Scans PTX one token at a time. Tokens are offsets into the text, so nothing is copied or allocated. The text ends in
// a NUL that no token crosses, so the scanner needs no bounds checks within a token.
// PTX ISA 9.0, chapter 4 (syntax).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::ptx {

enum class TokenKind : uint8_t {
  end,
  identifier,   // also %r1, $L_1 and _
  dot_word,     // .reg, .shared::cta; text() includes the dot
  number,       // integer, decimal or hexadecimal float
  string,       // with its quotes
  punctuation,  // one character, or one of the operators << >> <= >= == != && ||
};

struct Token {
  TokenKind kind = TokenKind::end;
  char first = 0;  // first character, of punctuation
  Offset at = 0, end = 0;
};

class Lexer {
 public:
  // Precondition: `text.data()[text.size()]` is NUL. Lexical mistakes are appended to `diagnostics`.
  Lexer(std::string_view text, std::vector<Diagnostic>& diagnostics) : text_(text), diagnostics_(diagnostics) {}

  Token next();

  // For the identifier at the start of a statement: the end of the whole opcode, "ld.global .u32" included.
  Offset opcode_end(Offset after_identifier) const;

  // The first character of the next token, without consuming it.
  char peek();

  void seek(Offset at) { at_ = at; }
  Offset at() const { return at_; }
  std::string_view text(const Token& token) const { return text_.substr(token.at, token.end - token.at); }

  // Skips past the '}' that matches the '{' before `at()`, or to the end of the text. Braces in strings and comments do
  // not count.
  void skip_block();
  void skip_line();

 private:
  void skip_space();
  void check_ascii(Offset at, Offset end);
  void report(DiagnosticKind kind, Offset at, Offset end, std::string message);
  void scan_number(Token& token);

  std::string_view text_;
  std::vector<Diagnostic>& diagnostics_;
  Offset at_ = 0;
};

}  // namespace ptxkit::ptx
