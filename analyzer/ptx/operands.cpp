// Operands of instructions: registers, constants, addresses, vectors, pairs, parameter lists.
// PTX ISA 9.0, chapter 6 (operands), 9.1, and the call, texture and tensor-copy instructions for nested lists.
#include <string_view>

#include <fmt/format.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/lexer.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/parser.hpp"
#include "analyzer/ptx/symbols.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::ptx {
namespace {

bool is_selector(std::string_view word) {
  if (word.size() < 2 || word.size() > 5 || (word[0] != 'b' && word[0] != 'h')) return false;
  for (const char c : word.substr(1)) {
    if (c < '0' || c > '9') return false;
  }
  return true;
}

}  // namespace

// Moves the operands from scratch_[first] on to the pool, as the children of `operand`.
void Parser::pool_children(Operand& operand, size_t first) {
  auto& pool = function().operand_pool;
  operand.first_child = static_cast<uint32_t>(pool.size());
  operand.child_count = static_cast<uint32_t>(scratch_.size() - first);
  pool.insert(pool.end(), scratch_.begin() + static_cast<ptrdiff_t>(first), scratch_.end());
  scratch_.resize(first);
}

void Parser::set_constant(Operand& operand, const Constant& constant) {
  operand.value = constant.bits;
  operand.kind = constant.is_integer()                      ? OperandKind::integer
                 : constant.kind == Constant::Kind::float32 ? OperandKind::float32
                                                            : OperandKind::float64;
}

// .x .y .z .w .r .g .b .a after a name, or the selector of a video instruction.
void Parser::parse_component(Operand& operand, std::string_view name, Components components) {
  if (token_.kind != TokenKind::dot_word) return;
  const std::string_view word = here().substr(1);
  if (components == Components::none && !is_selector(word)) {
    report_here(DiagnosticKind::bad_vector, fmt::format("'{}' has no components, found '.{}'", name, word));
    advance();
    return;
  }
  if (word.size() == 1) {
    static constexpr std::string_view kFrom = "xyzwrgba", kTo = "xyzwxyzw";
    const size_t index = kFrom.find(word[0]);
    if (index == std::string_view::npos) {
      report_here(DiagnosticKind::unexpected_token, fmt::format("expected a component .x .y .z .w, found '.{}'", word));
    } else {
      operand.component = static_cast<uint8_t>(kTo[index]);
    }
  } else if (is_selector(word) && components != Components::four) {
    operand.component = 's';
    operand.value = 0;
    for (size_t i = 0; i < word.size(); ++i) operand.value |= uint64_t{static_cast<uint8_t>(word[i])} << (8 * i);
  } else {
    report_here(DiagnosticKind::unexpected_token, fmt::format("expected a component .x .y .z .w, found '.{}'", word));
  }
  advance();
}

// `+ 4` or `+ -4` after the base of an address. ptxas rejects a bare '-'; it is reported, and the number after it is
// parsed.
bool Parser::parse_offset(Operand& operand) {
  if (!is('+') && !is('-')) return true;
  const bool minus = is('-');
  if (minus) unexpected("'+' before an offset, as in [%r1+-4]");
  advance();
  Constant offset;
  const Offset at = token_.at;
  if (!parse_constant(offset)) return false;
  if (!offset.is_integer()) report(DiagnosticKind::bad_literal, at, previous_end_, "an offset is an integer");
  operand.value += minus ? 0 - offset.bits : offset.bits;
  operand.has_offset = true;
  return true;
}

// Video instructions name parts of scalar registers. On a vector register the words name its components.
Parser::Components Parser::components_of(const Operand& operand) {
  return function().registers[operand.id].vector > 1 ? Components::four : Components::none;
}

// An identifier: sink, register, special register, variable, function, label.
bool Parser::parse_name(Op op, Operand& operand) {
  const std::string_view name = here();
  const Offset at = token_.at;
  advance();
  if (name == "_") {
    operand.kind = OperandKind::sink;
    return true;
  }
  uint32_t index = 0;
  const Symbol* range = symbols_.find_in_range(name, index, function().register_declarations);
  const Symbol* symbol = symbols_.find(name);
  if (range != nullptr && (symbol == nullptr || range->depth > symbol->depth)) {
    operand.kind = OperandKind::reg;
    operand.id = use_register(range->id, index);
    parse_component(operand, name, components_of(operand));
    return true;
  }
  const SymbolKind kind = symbol != nullptr ? symbol->kind : SymbolKind::none;
  const bool names_label = op == Op::bra || op == Op::brx || op == Op::call;
  switch (kind) {
    case SymbolKind::reg:
      operand.kind = OperandKind::reg;
      operand.id = use_register(symbol->id, 0);
      parse_component(operand, name, components_of(operand));
      return true;
    case SymbolKind::variable: {
      operand.kind = OperandKind::symbol;
      operand.id = symbol->id;
      if (op == Op::call) return true;
      if (accept('[')) {  // table[2]: an address with an index in elements
        Constant element;
        if (!parse_constant(element) || !expect(']', "the index")) return false;
        operand.kind = OperandKind::address;
        operand.base = AddressBase::variable;
        const Variable& variable = module_.variables[symbol->id];
        operand.value = element.bits * byte_width(variable.type) * variable.vector;
        return true;
      }
      return parse_offset(operand);
    }
    case SymbolKind::function:
      operand.kind = OperandKind::function;
      operand.id = symbol->id;
      return true;
    default:
      break;
  }
  if (name == "WARP_SZ") {
    operand.kind = OperandKind::integer;
    operand.value = 32;
    return true;
  }
  const SpecialRegister special = name[0] == '%' ? find_special(name) : SpecialRegister::none;
  if (special != SpecialRegister::none) {
    operand.kind = OperandKind::special;
    operand.id = static_cast<uint32_t>(special);
    if (version() != 0 && version() < first_version(special)) {
      report(DiagnosticKind::needs_version, at, at + static_cast<Offset>(name.size()),
             fmt::format("'{}' needs '.version {}.{}' or later, the file has {}.{}", name, first_version(special) / 10,
                         first_version(special) % 10, module_.version_major, module_.version_minor));
    } else if (module_.target_sm != 0 && module_.target_sm < first_target(special)) {
      report(DiagnosticKind::needs_target, at, at + static_cast<Offset>(name.size()),
             fmt::format("'{}' needs sm_{} or later, the file has {}", name, first_target(special), module_.target));
    }
    if (token_.kind == TokenKind::dot_word && !is_vector(special)) {
      report_here(DiagnosticKind::bad_special_register,
                  fmt::format("'{}' has no components, found '{}'", name, here()));
    }
    parse_component(operand, name, Components::four);
    return true;
  }
  if (names_label || kind == SymbolKind::label || kind == SymbolKind::table) {
    // Resolved when the instruction or the scope is complete. Until then `value` holds the length of the name.
    operand.kind = OperandKind::label;
    operand.value = name.size();
    return true;
  }
  operand.kind = OperandKind::text;
  if (op != Op::unknown) {
    report(DiagnosticKind::undeclared_name, at, at + static_cast<Offset>(name.size()),
           fmt::format("'{}' is not declared in this scope", name));
  }
  parse_component(operand, name, Components::any);
  return true;
}

// a, b, c and the closing character, after the opening one.
bool Parser::parse_group(Op op, Operand& operand, char close, OperandKind kind, unsigned nesting) {
  operand.kind = kind;
  const size_t first = scratch_.size();
  if (!accept(close)) {
    do {
      Operand child;
      if (!parse_operand(op, child, nesting + 1)) return false;
      scratch_.push_back(child);
    } while (accept(','));
    if (!expect(close, "the list")) return false;
  }
  pool_children(operand, first);
  return true;
}

// [base], [base+4], [map, {x, y}, ...], after the '['.
bool Parser::parse_address(Op op, Operand& operand, unsigned nesting) {
  operand.kind = OperandKind::address;
  if (token_.kind == TokenKind::identifier && here() != "WARP_SZ") {
    Operand base;
    base.at = token_.at;
    const Token name = token_;
    // An address is never a label, so an unknown name is undeclared even in a branch.
    if (!parse_name(op == Op::unknown ? Op::unknown : Op::ld, base)) return false;
    operand.id = base.id;
    operand.component = base.component;
    if (base.kind == OperandKind::reg) {
      if (base.component != 0) {
        report(DiagnosticKind::unexpected_token, name.at, previous_end_, "expected a register, not a part of one");
      }
      operand.base = AddressBase::reg;
    } else if (base.kind == OperandKind::symbol) {
      operand.base = AddressBase::variable;
      operand.value = base.value;
    } else if (base.kind != OperandKind::text) {
      report(DiagnosticKind::unexpected_token, name.at, name.end,
             fmt::format("expected a register or a variable as address, found '{}'", lexer_.text(name)));
    }
    if (!parse_offset(operand)) return false;
  } else {
    Constant address;
    const Token start = token_;
    if (!parse_constant(address)) return false;
    if (!address.is_integer()) report(DiagnosticKind::bad_literal, start.at, previous_end_, "an address is an integer");
    operand.base = AddressBase::immediate;
    operand.value = address.bits;
  }
  if (operand.has_offset && is(',')) {
    report(DiagnosticKind::unexpected_token, operand.at, previous_end_, "an address with coordinates takes no offset");
  }
  const size_t first = scratch_.size();
  while (accept(',')) {
    Operand child;
    if (!parse_operand(op, child, nesting + 1)) return false;
    scratch_.push_back(child);
  }
  if (!expect(']', "the address")) return false;
  if (scratch_.size() > first) pool_children(operand, first);
  if (accept_word(".unified")) operand.component = 'u';
  return true;
}

bool Parser::parse_primary(Op op, Operand& operand, unsigned nesting) {
  operand.at = token_.at;
  if (nesting > kMaxNesting) {
    report_here(DiagnosticKind::limit_exceeded, fmt::format("operands nest deeper than {}", kMaxNesting));
    return false;
  }
  if (token_.kind == TokenKind::identifier && here() != "WARP_SZ") return parse_name(op, operand);
  if (token_.kind == TokenKind::punctuation) {
    switch (token_.first) {
      case '[':
        advance();
        return parse_address(op, operand, nesting);
      case '{':
        advance();
        return parse_group(op, operand, '}', OperandKind::vector, nesting);
      case '(':
        if (op != Op::call) break;
        advance();
        return parse_group(op, operand, ')', OperandKind::parameters, nesting);
      case '!':
      case '-': {
        const char c = lexer_.peek();
        const bool name = c == '%' || c == '_' || c == '$' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool minus = is('-');
        if (!name || !(is('!') || minus)) break;
        advance();
        if (token_.kind != TokenKind::identifier || here() == "WARP_SZ") {
          unexpected("a register");
          return false;
        }
        operand.negated = true;
        if (!parse_name(op, operand)) return false;
        if (minus && operand.kind == OperandKind::reg && function().registers[operand.id].type == Type::pred) {
          report(DiagnosticKind::bad_predicate, operand.at, previous_end_, "a predicate is negated by '!', not by '-'");
        }
        return true;
      }
      case '+':
      case '~':
        break;
      default:
        unexpected("an operand");
        return false;
    }
  } else if (token_.kind != TokenKind::number && token_.kind != TokenKind::identifier) {
    unexpected("an operand");
    return false;
  }
  Constant constant;
  if (!parse_constant(constant)) return false;
  set_constant(operand, constant);
  return true;
}

// A primary operand; one with an offset (`%r1+4`, which ptxas accepts as a sum); or two joined by '|'.
bool Parser::parse_operand(Op op, Operand& operand, unsigned nesting) {
  if (!parse_primary(op, operand, nesting)) return false;
  if (is('+') && nesting == 0 && operand.kind == OperandKind::reg && operand.component == 0 && !operand.negated &&
      op != Op::call) {
    Constant offset;
    const Token start = token_;
    advance();
    if (!parse_constant(offset)) return false;
    if (!offset.is_integer()) report(DiagnosticKind::bad_literal, start.at, previous_end_, "an offset is an integer");
    operand.value = offset.bits;
    return true;
  }
  if (!is('|')) return true;
  advance();
  Operand right;
  if (!parse_primary(op, right, nesting)) return false;
  const Operand left = operand;
  const size_t first = scratch_.size();
  scratch_.push_back(left);
  scratch_.push_back(right);
  operand = Operand();
  operand.kind = OperandKind::pair;
  operand.at = left.at;
  pool_children(operand, first);
  return true;
}

// Parses all operands up to the ';', and leaves the ';'.
bool Parser::parse_operands(Op op, Instruction& instruction) {
  scratch_.clear();
  bool complete = true;
  if (!is(';') && !is('}') && token_.kind != TokenKind::end) {
    do {
      Operand operand;
      complete = parse_operand(op, operand, 0);
      // After a mistake scratch_ may end with part of a group; the operands before it are kept.
      if (!complete) break;
      scratch_.push_back(operand);
    } while (accept(','));
  }
  auto& pool = function().operand_pool;
  instruction.first_operand = static_cast<uint32_t>(pool.size());
  instruction.operand_count = static_cast<uint32_t>(scratch_.size());
  pool.insert(pool.end(), scratch_.begin(), scratch_.end());
  for (uint32_t i = 0; i < instruction.operand_count; ++i) {
    Operand& operand = pool[instruction.first_operand + i];
    if (operand.kind != OperandKind::label || operand.id != kNone) continue;
    PendingUse use;
    use.name = module_.text.substr(operand.at, operand.value);
    use.at = operand.at;
    use.operand = instruction.first_operand + i;
    operand.value = 0;
    if (!resolve(use, true)) pending_.push_back(use);
  }
  return complete;
}

}  // namespace ptxkit::ptx
