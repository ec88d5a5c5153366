// Initialisers of variables. PTX ISA 9.0, 5.4.4 (initializers), 5.3 (opaque types).
#include <algorithm>
#include <bit>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/lexer.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/parser.hpp"
#include "analyzer/ptx/symbols.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::ptx {
namespace {

constexpr uint64_t kMaxPaddingCount = 1 << 20;  // limit on zeros that nested initialisers may omit

// Converts `value` to the bits of an element of `type`, truncated as in ptxas. Returns false if the kinds of number
// differ.
bool element_bits(const Constant& value, Type type, uint64_t& bits) {
  bits = value.bits;
  if (kind(type) == TypeKind::floating) {
    if (value.is_integer()) return false;
    if (type == Type::f64) {
      bits = std::bit_cast<uint64_t>(value.as_double());
    } else if (value.kind != Constant::Kind::float32) {
      bits = std::bit_cast<uint32_t>(static_cast<float>(value.as_double()));
    }
    return true;
  }
  if (!value.is_integer()) return kind(type) == TypeKind::bits;
  const unsigned width = bit_width(type);
  if (width < 64) bits &= (uint64_t{1} << width) - 1;
  return true;
}

// A field of opaque variables, and the opaque types that have it.
struct OpaqueField {
  std::string_view name;
  bool texture, sampler, surface;
};
constexpr OpaqueField kOpaqueFields[] = {
    {"width", true, false, true},
    {"height", true, false, true},
    {"depth", true, false, true},
    {"channel_data_type", true, false, true},
    {"channel_order", true, false, true},
    {"array_size", true, false, true},
    {"num_mipmap_levels", true, false, false},
    {"num_samples", true, false, false},
    {"normalized_coords", true, false, false},
    {"memory_layout", false, false, true},
    {"filter_mode", true, true, false},
    {"addr_mode_0", true, true, false},
    {"addr_mode_1", true, true, false},
    {"addr_mode_2", true, true, false},
    {"force_unnormalized_coords", false, true, false},
};
constexpr std::string_view kOpaqueValues[] = {"wrap",    "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border",
                                              "nearest", "linear"};

bool has_field(Type type, std::string_view name) {
  return std::any_of(std::begin(kOpaqueFields), std::end(kOpaqueFields), [&](const OpaqueField& field) {
    return field.name == name && (type == Type::texref    ? field.texture
                                  : type == Type::surfref ? field.surface
                                                          : field.sampler);
  });
}

}  // namespace

void Parser::parse_initializer(Variable& variable) {
  const auto refuse = [&](std::string message) { report_here(DiagnosticKind::bad_initializer, std::move(message)); };
  if (variable.space != Space::global && variable.space != Space::constant) {
    refuse(fmt::format("only .global and .const variables have initialisers, '{}' is in .{}", variable.name,
                       text(variable.space)));
  }
  if (kind(variable.type) == TypeKind::opaque)
    return parse_opaque_initializer(variable.type, variable.dimensions.size());
  if (variable.type == Type::f16 || variable.type == Type::f16x2) {
    refuse(fmt::format("variables of .{} have no initialisers", text(variable.type)));
  }
  const Offset at = token_.at;
  const bool is_list = variable.is_array || variable.vector > 1;
  if (is_list != is('{')) {
    unexpected(is_list ? "a list in braces as initialiser" : "a number or an address as initialiser");
    return skip_initializer();
  }
  if (!is_list) {
    if (!parse_initializer_element(variable)) skip_initializer();
    return;
  }
  parse_initializer_list(variable, 0);
  const auto count = static_cast<uint64_t>(variable.initializer.size());
  const uint64_t element = byte_width(variable.type);
  if (variable.is_unsized) {
    uint64_t row = variable.vector;
    for (size_t i = 1; i < variable.dimensions.size(); ++i) row *= variable.dimensions[i];
    variable.dimensions[0] = row == 0 ? 0 : (count + row - 1) / row;
    variable.is_unsized = false;
    variable.size_bytes = variable.dimensions[0] * element * row;
    if (count == 0)
      report(DiagnosticKind::bad_initializer, at, previous_end_, "an array without a size needs elements");
  } else if (element != 0 && count > variable.size_bytes / element) {
    report(
        DiagnosticKind::bad_initializer, at, previous_end_,
        fmt::format("{} initialiser elements for the {} of '{}'", count, variable.size_bytes / element, variable.name));
  }
}

// After a mistake in an initialiser, skips to the end of the statement.
void Parser::skip_initializer() {
  while (token_.kind != TokenKind::end && !is(';')) advance();
}

// { field = value, ... } of a texture, sampler or surface, with another pair of braces for each dimension of an array.
void Parser::parse_opaque_initializer(Type type, size_t depth) {
  if (!is('{')) {
    unexpected("fields in braces");
    return skip_initializer();
  }
  advance();
  if (accept('}')) return;
  do {
    if (depth > 0 && is('{')) {
      parse_opaque_initializer(type, depth - 1);
      continue;
    }
    if (token_.kind != TokenKind::identifier || !has_field(type, here())) {
      report_here(DiagnosticKind::bad_initializer,
                  fmt::format("expected a field of a .{}, found {}", text(type), found()));
      return skip_initializer();
    }
    advance();
    if (!expect('=', "the field")) return skip_initializer();
    if (token_.kind == TokenKind::identifier && here() != "WARP_SZ") {
      if (std::find(std::begin(kOpaqueValues), std::end(kOpaqueValues), here()) == std::end(kOpaqueValues)) {
        report_here(DiagnosticKind::bad_initializer, fmt::format("'{}' is no value of a field", here()));
      }
      advance();
      continue;
    }
    Constant value;
    if (!parse_constant(value)) return skip_initializer();
  } while (accept(','));
  if (!expect('}', "the fields")) skip_initializer();
}

// Parses the elements of one dimension. After the last dimension follow the components of a vector, all of which are
// required.
void Parser::parse_initializer_list(Variable& variable, size_t depth) {
  advance();
  const size_t list_depth = variable.dimensions.size() + (variable.vector > 1 ? 1 : 0);
  const size_t start = variable.initializer.size();
  const Offset at = previous_end_ - 1;
  if (!is('}')) {
    do {
      const bool is_element = depth + 1 == list_depth;
      if (is_element == is('{')) {
        unexpected(is_element ? "an element" : "a list in braces");
        return skip_initializer();
      }
      if (is_element) {
        if (!parse_initializer_element(variable)) return skip_initializer();
      } else {
        parse_initializer_list(variable, depth + 1);
      }
    } while (accept(','));
  }
  if (!expect('}', "the initialiser list")) return skip_initializer();
  const uint64_t written = variable.initializer.size() - start;
  if (depth == variable.dimensions.size() && written != variable.vector) {
    report(DiagnosticKind::bad_initializer, at, previous_end_,
           fmt::format("expected {} elements of a vector, found {}", variable.vector, written));
  }
  if (depth == 0) return;
  uint64_t row = variable.vector;
  for (size_t i = depth; i < variable.dimensions.size(); ++i) row = bounded_product(row, variable.dimensions[i]);
  if (written > row) {
    report(DiagnosticKind::bad_initializer, at, previous_end_, fmt::format("{} elements in a row of {}", written, row));
  }
  if (written >= row) return;
  if (row - written > kMaxPaddingCount) {
    report(DiagnosticKind::limit_exceeded, previous_end_ - 1, previous_end_,
           fmt::format("an initialiser list leaves out more than {} elements", kMaxPaddingCount));
    return;
  }
  variable.initializer.resize(start + row);
}

// symbol, symbol+4, generic(symbol)+4: the address of an earlier declaration.
bool Parser::parse_initializer_symbol(Initializer& element) {
  if (here() == "generic" && lexer_.peek() == '(') {
    require_level("generic()", token_.at, token_.end);
    element.generic = true;
    advance();
    advance();
  }
  if (token_.kind != TokenKind::identifier) {
    unexpected("a symbol");
    return false;
  }
  const auto refuse = [&](std::string message) { report_here(DiagnosticKind::bad_initializer, std::move(message)); };
  const Symbol* symbol = symbols_.find(here());
  if (symbol != nullptr && symbol->kind == SymbolKind::variable) {
    element.kind = Initializer::Kind::variable;
    element.id = symbol->id;
    const Space space = module_.variables[symbol->id].space;
    if (space != Space::global && space != Space::constant) {
      refuse(fmt::format("'{}' is in .{}, its address is no constant", here(), text(space)));
    }
  } else if (symbol != nullptr && symbol->kind == SymbolKind::function) {
    element.kind = Initializer::Kind::function;
    element.id = symbol->id;
    if (element.generic) refuse(fmt::format("'{}' is a function, generic() takes variables", here()));
  } else {
    report_here(DiagnosticKind::undeclared_name, fmt::format("'{}' is not declared before its use here", here()));
  }
  advance();
  if (element.generic && !expect(')', "the symbol")) return false;
  if (!is('+')) return true;
  if (element.kind == Initializer::Kind::function) unexpected("no offset behind a function");
  advance();
  Constant offset;
  const Offset at = token_.at;
  if (!parse_constant(offset)) return false;
  if (!offset.is_integer()) report(DiagnosticKind::bad_literal, at, previous_end_, "an offset is an integer");
  element.value = offset.bits;
  return true;
}

bool Parser::parse_initializer_element(Variable& variable) {
  Initializer element;
  const Token start = token_;
  // 0xff00(symbol): one byte of the address
  if (token_.kind == TokenKind::number && lexer_.peek() == '(') {
    require_level("a byte of an address as initialiser", start.at, start.end);
    Constant mask;
    if (!parse_number(mask) || !accept('(')) return false;
    const unsigned byte = static_cast<unsigned>(std::countr_zero(mask.bits)) / 8 % 8;
    element.mask_shift = static_cast<uint8_t>(byte);
    if (mask.bits != uint64_t{0xff} << (byte * 8)) {
      report(DiagnosticKind::bad_initializer, start.at, start.end, "expected a mask of one byte such as 0xff00");
    }
  }
  const bool masked = element.mask_shift != 0xff;
  if (masked || (token_.kind == TokenKind::identifier && here() != "WARP_SZ")) {
    if (!parse_initializer_symbol(element)) return false;
    const Type type = variable.type;
    if (type != Type::u64 && type != Type::u32 && !(masked && type == Type::u8)) {
      report(DiagnosticKind::bad_initializer, start.at, previous_end_,
             fmt::format("expected a variable of {}.u32 or .u64 for an address, found .{}", masked ? ".u8, " : "",
                         text(type)));
    }
  } else {
    Constant value;
    if (!parse_constant(value)) return false;
    if (!element_bits(value, variable.type, element.value)) {
      report(DiagnosticKind::bad_initializer, start.at, previous_end_,
             value.is_integer() ? fmt::format("expected a float such as 1.0 or 0f3f800000 for .{}, found an integer",
                                              text(variable.type))
                                : fmt::format("expected an integer for .{}, found a float", text(variable.type)));
    }
  }
  if (masked && !expect(')', "the masked symbol")) return false;
  variable.initializer.push_back(element);
  return true;
}

}  // namespace ptxkit::ptx
