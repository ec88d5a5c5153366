// Literals and constant expressions, evaluated while parsing.
// PTX ISA 9.0, 4.5 (constants): integers are 64-bit, signed unless they need the sign bit or carry a U; operators and
// precedences are those of C; casts are (.s64) and (.u64).
#include <bit>
#include <charconv>
#include <limits>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/lexer.hpp"
#include "analyzer/ptx/parser.hpp"

namespace ptxkit::ptx {
namespace {

// Precedence of a binary operator, 1 for the loosest; 0 if `text` is not an operator.
unsigned precedence(std::string_view text) {
  const char c = text[0];
  if (text.size() == 2) {
    switch (c) {
      case '|':
        return 1;
      case '&':
        return 2;
      case '=':
      case '!':
        return 6;
      default:
        return text[1] == '=' ? 7 : 8;
    }
  }
  switch (c) {
    case '|':
      return 3;
    case '^':
      return 4;
    case '&':
      return 5;
    case '<':
    case '>':
      return 7;
    case '+':
    case '-':
      return 9;
    case '*':
    case '/':
    case '%':
      return 10;
    default:
      return 0;
  }
}

Constant integer(uint64_t bits, bool is_unsigned) {
  return {is_unsigned ? Constant::Kind::unsigned_int : Constant::Kind::signed_int, bits};
}

Constant floating(double value) { return {Constant::Kind::float64, std::bit_cast<uint64_t>(value)}; }

// Precondition: no division by zero, and no shift beyond the width.
Constant apply(std::string_view op, const Constant& a, const Constant& b) {
  const bool is_unsigned = a.kind == Constant::Kind::unsigned_int || b.kind == Constant::Kind::unsigned_int;
  const uint64_t x = a.bits, y = b.bits;
  const auto sx = static_cast<int64_t>(x), sy = static_cast<int64_t>(y);
  const bool overflows = sx == std::numeric_limits<int64_t>::min() && sy == -1;
  if (op == "||") return integer(x != 0 || y != 0, false);
  if (op == "&&") return integer(x != 0 && y != 0, false);
  if (op == "|") return integer(x | y, is_unsigned);
  if (op == "^") return integer(x ^ y, is_unsigned);
  if (op == "&") return integer(x & y, is_unsigned);
  if (op == "==") return integer(x == y, false);
  if (op == "!=") return integer(x != y, false);
  if (op == "<") return integer(is_unsigned ? x < y : sx < sy, false);
  if (op == "<=") return integer(is_unsigned ? x <= y : sx <= sy, false);
  if (op == ">") return integer(is_unsigned ? x > y : sx > sy, false);
  if (op == ">=") return integer(is_unsigned ? x >= y : sx >= sy, false);
  if (op == "<<") return integer(y > 63 ? 0 : x << y, a.kind == Constant::Kind::unsigned_int);
  if (op == ">>") {
    if (a.kind == Constant::Kind::unsigned_int) return integer(y > 63 ? 0 : x >> y, true);
    return integer(static_cast<uint64_t>(sx >> (y > 63 ? 63 : y)), false);
  }
  if (op == "+") return integer(x + y, is_unsigned);
  if (op == "-") return integer(x - y, is_unsigned);
  if (op == "*") return integer(x * y, is_unsigned);
  if (op == "/") {
    if (is_unsigned) return integer(x / y, true);
    return integer(overflows ? x : static_cast<uint64_t>(sx / sy), false);
  }
  if (is_unsigned) return integer(x % y, true);
  return integer(overflows ? 0 : static_cast<uint64_t>(sx % sy), false);
}

}  // namespace

double Constant::as_double() const {
  switch (kind) {
    case Kind::signed_int:
      return static_cast<double>(static_cast<int64_t>(bits));
    case Kind::unsigned_int:
      return static_cast<double>(bits);
    case Kind::float32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case Kind::float64:
      break;
  }
  return std::bit_cast<double>(bits);
}

// Parses the current token, which is a number.
bool Parser::parse_number(Constant& result) {
  const Token token = token_;
  std::string_view text = here();
  advance();
  const auto bad = [&](std::string_view why) {
    report(DiagnosticKind::bad_literal, token.at, token.end,
           fmt::format("'{}' is no number: {}", lexer_.text(token), why));
    return false;
  };
  const char second = text.size() > 1 ? text[1] : '\0';
  if (text[0] == '0' && (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
    const bool single = second == 'f' || second == 'F';
    text.remove_prefix(2);
    if (text.size() != (single ? 8u : 16u)) {
      return bad(single ? "expected 8 hexadecimal digits after 0f" : "expected 16 hexadecimal digits after 0d");
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result.bits, 16);
    if (error != std::errc() || end != text.data() + text.size()) return bad("expected hexadecimal digits");
    result.kind = single ? Constant::Kind::float32 : Constant::Kind::float64;
    return true;
  }
  int base = 10;
  if (text[0] == '0' && (second == 'x' || second == 'X')) {
    base = 16;
    text.remove_prefix(2);
  } else if (text[0] == '0' && (second == 'b' || second == 'B')) {
    base = 2;
    text.remove_prefix(2);
  } else if (text.find_first_of(".eE") != std::string_view::npos) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end != text.data() + text.size()) return bad("expected a decimal fraction such as 1.5e3");
    if (error == std::errc::result_out_of_range) {
      report(DiagnosticKind::literal_out_of_range, token.at, token.end,
             fmt::format("'{}' does not fit an f64", lexer_.text(token)));
    }
    result = floating(value);
    return true;
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
    text.remove_prefix(1);
  }
  const bool is_unsigned = !text.empty() && text.back() == 'U';
  if (is_unsigned) text.remove_suffix(1);
  if (text.empty() && base == 8) text = "0";  // "0U"
  // ptxas takes the low 64 bits of a longer hexadecimal number, and rejects longer numbers of other bases.
  if (base == 16 && text.size() > 16 && text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos) {
    text.remove_prefix(text.size() - 16);
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result.bits, base);
  if (text.empty() || end != text.data() + text.size()) return bad("expected digits of its base");
  if (error != std::errc()) {
    report(DiagnosticKind::literal_out_of_range, token.at, token.end,
           fmt::format("'{}' does not fit 64 bits", lexer_.text(token)));
    result.bits = ~uint64_t{0};
  }
  result.kind = is_unsigned || result.bits >> 63 != 0 ? Constant::Kind::unsigned_int : Constant::Kind::signed_int;
  return true;
}

bool Parser::parse_unary(Constant& result, unsigned nesting) {
  if (nesting > kMaxNesting) {
    report_here(DiagnosticKind::limit_exceeded, fmt::format("an expression nests deeper than {}", kMaxNesting));
    return false;
  }
  if (token_.kind == TokenKind::number) return parse_number(result);
  if (token_.kind == TokenKind::identifier && here() == "WARP_SZ") {
    result = integer(32, false);
    advance();
    return true;
  }
  for (const char op : {'-', '+', '~', '!'}) {
    if (!is(op)) continue;
    const Token token = token_;
    advance();
    if (!parse_unary(result, nesting + 1)) return false;
    if (op == '+') return true;
    if (result.is_integer()) {
      if (op == '-') result.bits = 0 - result.bits;
      if (op == '~') result.bits = ~result.bits;
      if (op == '!') result = integer(result.bits == 0, false);
      return true;
    }
    if (op != '-') {
      report(DiagnosticKind::bad_expression, token.at, token.end, fmt::format("'{}' needs an integer", op));
      return false;
    }
    result.bits ^= result.kind == Constant::Kind::float32 ? 0x80000000u : uint64_t{1} << 63;
    return true;
  }
  if (accept('(')) {
    if (is_word(".s64") || is_word(".u64")) {
      const bool to_unsigned = is_word(".u64");
      advance();
      if (!expect(')', "the cast") || !parse_unary(result, nesting + 1)) return false;
      if (!result.is_integer()) {
        report(DiagnosticKind::bad_expression, previous_end_ - 1, previous_end_, "only integers are cast");
        return false;
      }
      result = integer(result.bits, to_unsigned);
      return true;
    }
    return parse_constant(result, nesting + 1) && expect(')', "the expression");
  }
  unexpected("a constant");
  return false;
}

bool Parser::parse_binary(Constant& result, unsigned loosest, unsigned nesting) {
  if (!parse_unary(result, nesting)) return false;
  for (;;) {
    if (token_.kind != TokenKind::punctuation) return true;
    const std::string_view op = here();
    const unsigned level = precedence(op);
    if (level == 0 || level < loosest) return true;
    const Token token = token_;
    advance();
    Constant right;
    if (!parse_binary(right, level + 1, nesting)) return false;
    if (result.is_integer() && right.is_integer()) {
      if ((op == "/" || op == "%") && right.bits == 0) {
        report(DiagnosticKind::bad_expression, token.at, token.end, "division by zero in a constant expression");
        return false;
      }
      result = apply(op, result, right);
      continue;
    }
    const double a = result.as_double(), b = right.as_double();
    if (op == "+") {
      result = floating(a + b);
    } else if (op == "-") {
      result = floating(a - b);
    } else if (op == "*") {
      result = floating(a * b);
    } else if (op == "/") {
      result = floating(a / b);
    } else {
      report(DiagnosticKind::bad_expression, token.at, token.end, fmt::format("'{}' needs integers on both sides", op));
      return false;
    }
  }
}

bool Parser::parse_constant(Constant& result, unsigned nesting) {
  if (!parse_binary(result, 1, nesting)) return false;
  if (!is('?')) return true;
  advance();
  Constant yes, no;
  if (nesting > kMaxNesting || !parse_constant(yes, nesting + 1) || !expect(':', "the first choice") ||
      !parse_constant(no, nesting + 1)) {
    return false;
  }
  result = result.bits != 0 ? yes : no;
  return true;
}

// Parses a plain number: sizes, counts and line numbers are not expressions.
bool Parser::parse_count(uint64_t& value, std::string_view what) {
  const Token start = token_;
  Constant constant;
  if (token_.kind == TokenKind::number) {
    if (!parse_number(constant)) return false;
  } else if (token_.kind == TokenKind::identifier && here() == "WARP_SZ") {
    constant.bits = 32;
    advance();
  } else {
    unexpected(what);
    return false;
  }
  if (!constant.is_integer()) {
    report(DiagnosticKind::literal_out_of_range, start.at, previous_end_,
           fmt::format("expected {}, found a fraction", what));
    return false;
  }
  value = constant.bits;
  return true;
}

}  // namespace ptxkit::ptx
