// Debugging directives: source files, line numbers, and the data of debug sections.
// PTX ISA 9.0, 11.5.
#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/lexer.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/parser.hpp"
#include "analyzer/ptx/symbols.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::ptx {
namespace {

uint64_t location_key(const Location& location) {
  return (uint64_t{location.file} * 0x9e3779b97f4a7c15u) ^ (uint64_t{location.line} << 20) ^ location.column;
}

}  // namespace

void Parser::parse_file() {
  const Offset at = token_.at;
  advance();
  uint64_t number = 0;
  if (!parse_count(number, "a file number")) return recover();
  if (token_.kind != TokenKind::string) {
    unexpected("a file name in quotes");
    return recover();
  }
  const std::string_view quoted = here();
  if (!file_numbers_.insert(number).second) {
    report(DiagnosticKind::duplicate_name, at, token_.end, fmt::format("file {} is already named", number));
  }
  module_.files.push_back(
      {static_cast<uint32_t>(number), quoted.substr(1, quoted.size() >= 2 ? quoted.size() - 2 : 0)});
  advance();
  if (is(',')) {
    require_level("a time stamp in '.file'", token_.at, token_.end);
    for (unsigned i = 0; i < 2 && accept(','); ++i) {  // time stamp and size
      uint64_t ignored = 0;
      if (!parse_count(ignored, "a number")) return recover();
    }
  }
  add_item(function_ != kNone ? function().items : module_.items, Item::Kind::file,
           static_cast<uint32_t>(module_.files.size()) - 1, at);
}

// A number of a debug section: an integer with an optional sign, not an expression.
bool Parser::parse_section_number(unsigned width) {
  const Offset at = token_.at;
  const bool negative = accept('-');
  if (token_.kind != TokenKind::number) {
    unexpected("a number");
    return false;
  }
  Constant value;
  if (!parse_number(value)) return false;
  if (!value.is_integer()) {
    report(DiagnosticKind::bad_literal, at, previous_end_, "the data of a section are integers, found a fraction");
    return false;
  }
  // ptxas checks the range up to 32 bits; beyond that it checks negative numbers only.
  const bool too_small = negative && width < 64 && value.bits > uint64_t{1} << (width - 1);
  const bool too_large = !negative && width < 32 && value.bits >> width != 0;
  if (too_small || too_large) {
    report(DiagnosticKind::literal_out_of_range, at, previous_end_,
           fmt::format("'{}' does not fit {} bits", module_.text.substr(at, previous_end_ - at), width));
  }
  return true;
}

// .b8 1, 2, 3   .b32 label   .b64 label+4   .b64 end-begin   .b32 .debug_str
void Parser::parse_section_data() {
  const Token type_token = token_;
  const Word word = find_word(here().substr(1));
  const Type type = word.kind == Word::Kind::type ? static_cast<Type>(word.id) : Type::none;
  if (type == Type::none) {
    unexpected("'.b8', '.b16', '.b32' or '.b64'");
    return recover_in_section();
  }
  const unsigned width = bit_width(type);
  const bool known = kind(type) == TypeKind::bits && width >= 8 && width <= 64;
  advance();
  const bool is_symbol = token_.kind == TokenKind::identifier || token_.kind == TokenKind::dot_word;
  if (!known || (is_symbol && width < 32)) {
    report(
        DiagnosticKind::bad_declaration, type_token.at, type_token.end,
        fmt::format("'{}' is no type of {} in a section", lexer_.text(type_token), is_symbol ? "addresses" : "data"));
    if (!known) return recover_in_section();
  }
  if (is_symbol) {
    advance();
    if (accept('-')) {
      if (token_.kind != TokenKind::identifier) unexpected("a label");
      advance();
    } else if (accept('+') && !parse_section_number(64)) {
      return recover_in_section();
    }
    return;
  }
  do {
    if (!parse_section_number(width)) return recover_in_section();
  } while (accept(','));
}

// After a mistake, skips to the next line's directive or label, or to the end of the section.
void Parser::recover_in_section() {
  while (token_.kind != TokenKind::end && !is('}') &&
         !(starts_line() && (token_.kind == TokenKind::dot_word || token_.kind == TokenKind::identifier))) {
    advance();
  }
}

// A debug section is checked and kept as text, because it does not affect the kernels.
void Parser::parse_section() {
  const Offset at = token_.at;
  advance();
  if (token_.kind != TokenKind::dot_word) {
    unexpected("a section name such as .debug_info");
    return recover();
  }
  advance();
  if (!is('{')) {
    unexpected("'{' after a section name");
    return recover();
  }
  advance();
  symbols_.open_scope();
  while (token_.kind != TokenKind::end && !is('}') && diagnostics_.size() < kMaxErrors) {
    const Token start = token_;
    if (token_.kind == TokenKind::dot_word) {
      parse_section_data();
    } else if (token_.kind == TokenKind::identifier) {
      advance();
      if (!expect(':', "a label")) {
        recover_in_section();
        continue;
      }
      require_level("a label in a section", start.at, start.end);
      declare(lexer_.text(start), SymbolKind::label, kNone, start.at);
    } else {
      unexpected("a label, or data such as '.b8 1, 2'");
      advance();
      recover_in_section();
    }
  }
  symbols_.close_scope();
  if (token_.kind == TokenKind::end) {
    report(DiagnosticKind::unexpected_token, at, at + 8, "section is never closed, expected '}'");
  } else {
    advance();
  }
  add_item(module_.items, Item::Kind::section_text, kNone, at);
}

LocationId Parser::intern(const Location& location) {
  std::vector<LocationId>& ids = locations_[location_key(location)];
  for (const LocationId id : ids) {
    const Location& known = module_.locations[id];
    if (known.file == location.file && known.line == location.line && known.column == location.column &&
        known.inlined_at == location.inlined_at && known.function_name == location.function_name) {
      return id;
    }
  }
  module_.locations.push_back(location);
  ids.push_back(static_cast<LocationId>(module_.locations.size()) - 1);
  return ids.back();
}

bool Parser::parse_loc_numbers(Location& location) {
  uint32_t* const numbers[] = {&location.file, &location.line, &location.column};
  for (uint32_t* number : numbers) {
    uint64_t value = 0;
    if (!parse_count(value, "file, line and column")) return false;
    *number = static_cast<uint32_t>(value);
  }
  return true;
}

// .loc file line column [, function_name label [+ offset] , inlined_at file line column]
void Parser::parse_location() {
  const Offset at = token_.at;
  advance();
  Location location;
  if (!parse_loc_numbers(location)) return recover();
  if (accept(',')) {
    if (token_.kind != TokenKind::identifier || here() != "function_name") {
      unexpected("'function_name'");
      return recover();
    }
    require_level("inlined_at", token_.at, token_.end);
    advance();
    location.function_name = here();
    if (token_.kind != TokenKind::identifier) {
      unexpected("a label after 'function_name'");
      return recover();
    }
    advance();
    uint64_t ignored = 0;
    if (accept('+') && !parse_count(ignored, "an offset")) return recover();
    if (!expect(',', "the function's name")) return recover();
    if (token_.kind != TokenKind::identifier || here() != "inlined_at") {
      unexpected("'inlined_at'");
      return recover();
    }
    const Offset call_site_at = token_.at;
    advance();
    Location call_site;
    if (!parse_loc_numbers(call_site)) return recover();
    // Compilers state the call site's own location with its call site just before, so use the latest one.
    const auto found = locations_.find(location_key(call_site));
    if (found == locations_.end() || found->second.empty()) {
      report(DiagnosticKind::undeclared_name, call_site_at, previous_end_,
             fmt::format("'inlined_at' names '.loc {} {} {}', which does not precede it", call_site.file,
                         call_site.line, call_site.column));
    } else {
      location.inlined_at = found->second.back();
    }
  }
  location_ = intern(location);
  add_item(function_ != kNone ? function().items : module_.items, Item::Kind::location, location_, at);
}

}  // namespace ptxkit::ptx
