// Function bodies: statements, scopes, labels, tables, instructions.
// PTX ISA 9.0, 4.3 (statements), 9.7.12 (control flow), 11.5 (debugging directives).
#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/lexer.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/parser.hpp"
#include "analyzer/ptx/symbols.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/ptx/validate.hpp"

namespace ptxkit::ptx {

void Parser::open_scope() {
  symbols_.open_scope();
  pending_starts_.push_back(pending_.size());
}

// All labels of the scope are known now. Uses that name none of them are left to the enclosing scope.
void Parser::close_scope() {
  const size_t start = pending_starts_.back();
  pending_starts_.pop_back();
  size_t kept = start;
  for (size_t i = start; i < pending_.size(); ++i) {
    const PendingUse use = pending_[i];
    if (!resolve(use, true)) pending_[kept++] = use;
  }
  pending_.resize(kept);
  symbols_.close_scope();
}

// Binds a label operand, or a table's target, to the symbol of the name.
bool Parser::resolve(const PendingUse& use, bool only_this_scope) {
  const Symbol* symbol = symbols_.find(use.name);
  if (symbol == nullptr || (only_this_scope && symbol->depth != symbols_.depth())) return false;
  if (symbol->kind != SymbolKind::label && symbol->kind != SymbolKind::table) return false;
  if (symbol->kind == SymbolKind::table && symbol->at > use.at) return false;  // tables must precede their use
  if (use.table != kNone) {
    if (symbol->kind == SymbolKind::label) function().tables[use.table].targets[use.target] = symbol->id;
    return symbol->kind == SymbolKind::label;
  }
  Operand& operand = function().operand_pool[use.operand];
  operand.kind = symbol->kind == SymbolKind::label ? OperandKind::label : OperandKind::prototype;
  operand.id = symbol->id;
  return true;
}

void Parser::parse_body() {
  const Offset open = token_.at;
  advance();
  add_item(function().items, Item::Kind::open_brace, kNone, open);
  const uint32_t outside = symbols_.depth() - 1;  // parameters and the body's own names share a scope
  while (symbols_.depth() > outside) {
    if (token_.kind == TokenKind::end) {
      report_here(DiagnosticKind::unexpected_token,
                  fmt::format("the body of '{}' is never closed, expected '}}'", function().name));
      while (symbols_.depth() > outside) close_scope();
      break;
    }
    if (diagnostics_.size() >= kMaxErrors) {
      while (symbols_.depth() > outside) close_scope();
      break;
    }
    const Offset at = token_.at;
    if (is('{')) {
      advance();
      if (symbols_.depth() - outside >= kMaxNesting) {
        report(DiagnosticKind::limit_exceeded, at, at + 1, fmt::format("scopes nest deeper than {}", kMaxNesting));
        lexer_.seek(previous_end_);
        lexer_.skip_block();
        token_.end = lexer_.at();
        advance();
        continue;
      }
      open_scope();
      add_item(function().items, Item::Kind::open_brace, kNone, at);
      continue;
    }
    if (is('}')) {
      advance();
      close_scope();
      add_item(function().items, Item::Kind::close_brace, kNone, at);
      continue;
    }
    parse_statement();
    if (token_.at == at && token_.kind != TokenKind::end && !is('}')) advance();  // skip the unknown token
  }
  for (const PendingUse& use : pending_) {
    report(DiagnosticKind::undefined_label, use.at, use.at + static_cast<Offset>(use.name.size()),
           fmt::format("label '{}' is not defined in this scope", use.name));
  }
  pending_.clear();
  function().instructions.shrink_to_fit();
  function().operand_pool.shrink_to_fit();
}

void Parser::parse_statement() {
  const Offset at = token_.at;
  if (token_.kind == TokenKind::identifier) {
    const Token name = token_;
    if (lexer_.peek() == ':') {
      parse_label(name);
      return;
    }
    return parse_instruction(at, Guard());
  }
  if (is('@')) {
    const Guard guard = parse_guard();
    if (token_.kind == TokenKind::identifier) return parse_instruction(at, guard);
    unexpected("an instruction after its guard");
    return recover();
  }
  if (token_.kind == TokenKind::dot_word) return parse_body_directive();
  unexpected("an instruction, a label or a directive");
  const bool stray = is(';');
  advance();
  if (!stray) recover();
}

void Parser::parse_body_directive() {
  const Offset at = token_.at;
  const std::string_view word = here();
  auto& items = function().items;
  if (word == ".loc") return parse_location();
  if (word == ".reg") return parse_registers(items);
  if (word == ".pragma") return parse_pragma(items);
  Qualifiers qualifiers;
  qualifiers.at = at;
  const Word space = find_word(word.substr(1));
  if (space.kind == Word::Kind::space && static_cast<Space>(space.id) != Space::sreg) {
    advance();
    if (!parse_variables(qualifiers, static_cast<Space>(space.id), function().items)) recover();
    return;
  }
  if (word == ".attribute" || word == ".extern" || word == ".weak" || word == ".visible" || word == ".common" ||
      word == ".entry" || word == ".func" || word == ".version" || word == ".target" || word == ".section" ||
      word == ".address_size" || word == ".alias" || word == ".file" || word == ".maxntid" || word == ".reqntid" ||
      word == ".minnctapersm" || word == ".maxnreg") {
    report_here(DiagnosticKind::misplaced_directive, fmt::format("'{}' is not allowed inside a function body", word));
  } else if (word == ".branchtargets" || word == ".calltargets" || word == ".callprototype") {
    report_here(DiagnosticKind::misplaced_directive, fmt::format("'{}' needs a label before it", word));
  } else {
    report_here(DiagnosticKind::unknown_directive, fmt::format("unknown directive '{}'", word));
  }
  advance();
  recover();
}

void Parser::parse_label(const Token& name) {
  advance();
  advance();  // the ':'
  if (is_word(".branchtargets") || is_word(".calltargets") || is_word(".callprototype")) return parse_table(name);
  const std::string_view text = lexer_.text(name);
  auto& labels = function().labels;
  const auto id = static_cast<LabelId>(labels.size());
  labels.push_back({text, static_cast<InstructionId>(function().instructions.size()), name.at});
  if (const Symbol* before = symbols_.bind(text, SymbolKind::label, id, name.at)) {
    report(before->kind == SymbolKind::label ? DiagnosticKind::duplicate_label : DiagnosticKind::duplicate_name,
           name.at, name.end,
           fmt::format("'{}' is already defined in this scope, in line {}", text, module_.position(before->at).line));
  }
  add_item(function().items, Item::Kind::label, id, name.at);
}

// name: .branchtargets a, b;   name: .calltargets f, g;   name: .callprototype (results) _ (parameters) [.noreturn];
void Parser::parse_table(const Token& name) {
  const auto id = static_cast<uint32_t>(function().tables.size());
  Table table;
  table.name = lexer_.text(name);
  table.at = name.at;
  table.kind = is_word(".branchtargets") ? Table::Kind::branch_targets
               : is_word(".calltargets") ? Table::Kind::call_targets
                                         : Table::Kind::call_prototype;
  require_level(here(), token_.at, token_.end);
  advance();
  const auto bind = [&] {
    function().tables.push_back(std::move(table));
    declare(lexer_.text(name), SymbolKind::table, id, name.at);
  };
  if (table.kind == Table::Kind::call_prototype) {
    bool readable = true;
    if (accept('(')) readable = parse_parameter_list(table.results, ListOf::prototype_results);
    if (readable && token_.kind == TokenKind::identifier && here() == "_") {
      advance();
    } else if (readable) {
      unexpected("'_' in a call prototype");
      readable = false;
    }
    if (readable && accept('(')) readable = parse_parameter_list(table.parameters, ListOf::prototype);
    FunctionAttributes attributes;
    while (readable && (is_word(".noreturn") || is_word(".abi_preserve") || is_word(".abi_preserve_control"))) {
      parse_function_directive(attributes, ListOf::prototype);
    }
    table.no_return = attributes.no_return;
    for (const auto* list : {&table.results, &table.parameters}) {
      for (const VariableId v : *list) module_.variables[v].function = function_;
    }
    bind();
    if (!readable || !expect(';', "the call prototype")) recover();
    return add_item(function().items, Item::Kind::table, id, name.at);
  }
  const bool branches = table.kind == Table::Kind::branch_targets;
  std::vector<Token> targets;
  do {
    if (token_.kind != TokenKind::identifier) {
      unexpected(branches ? "a label" : "a function");
      bind();
      return recover();
    }
    targets.push_back(token_);
    advance();
  } while (accept(','));
  table.targets.resize(targets.size(), kNone);
  bind();
  for (uint32_t i = 0; i < targets.size(); ++i) {
    const std::string_view text = lexer_.text(targets[i]);
    if (branches) {
      PendingUse use;
      use.name = text;
      use.at = targets[i].at;
      use.table = id;
      use.target = i;
      if (!resolve(use, true)) pending_.push_back(use);
      continue;
    }
    const Symbol* symbol = symbols_.find(text);
    if (symbol != nullptr && symbol->kind == SymbolKind::function) {
      function().tables[id].targets[i] = symbol->id;
    } else {
      report(DiagnosticKind::undeclared_name, targets[i].at, targets[i].end,
             fmt::format("'{}' is not a function declared before", text));
    }
  }
  if (!expect(';', "the table")) recover();
  add_item(function().items, Item::Kind::table, id, name.at);
}

// @p or @!p
Guard Parser::parse_guard() {
  Guard guard;
  advance();
  guard.negated = accept('!');
  if (token_.kind != TokenKind::identifier) {
    unexpected("a predicate register");
    return guard;
  }
  Operand operand;
  operand.at = token_.at;
  const Token name = token_;
  parse_name(Op::unknown, operand);
  if (operand.kind == OperandKind::reg) {
    guard.reg = operand.id;
    if (operand.component != 0) {
      report(DiagnosticKind::bad_predicate, name.at, name.end,
             fmt::format("expected a whole predicate register as guard, found a part of '{}'", lexer_.text(name)));
    } else if (function().registers[operand.id].type != Type::pred) {
      report(DiagnosticKind::bad_predicate, name.at, name.end,
             fmt::format("expected a predicate register as guard, found '{}' of .{}", lexer_.text(name),
                         text(function().registers[operand.id].type)));
    }
  } else if (operand.kind == OperandKind::text) {
    report(DiagnosticKind::undeclared_name, name.at, name.end,
           fmt::format("'{}' is not declared in this scope", lexer_.text(name)));
  } else {
    report(DiagnosticKind::unexpected_token, name.at, name.end,
           fmt::format("expected a predicate register, found '{}'", lexer_.text(name)));
  }
  return guard;
}

DirectiveHead& Parser::head(std::string_view spelling) {
  const auto [entry, is_new] = heads_.try_emplace(spelling);
  DirectiveHead& result = entry->second;
  if (!is_new) return result;
  Instruction& pattern = result.pattern;
  const Opcode opcode = read_opcode(spelling);
  pattern.op = opcode.op;
  for (const OpcodeWord& each : opcode.words) {
    const Word known = each.word;
    switch (known.kind) {
      case Word::Kind::type:
        if (pattern.type_count < std::size(pattern.types))
          pattern.types[pattern.type_count++] = static_cast<Type>(known.id);
        break;
      case Word::Kind::space:
        if (pattern.op == Op::cvta && result.modifiers.size() == 1 && result.modifiers[0] == Mod::to)
          pattern.to_space = true;
        (pattern.space == Space::generic ? pattern.space : pattern.second_space) = static_cast<Space>(known.id);
        break;
      case Word::Kind::vector:
        pattern.vector = static_cast<uint8_t>(known.id);
        break;
      case Word::Kind::modifier:
        result.modifiers.push_back(static_cast<Mod>(known.id));
        break;
      case Word::Kind::unknown:
        result.modifiers.push_back(Mod::unknown);
        if (result.unknown_word == 0) result.unknown_word = static_cast<uint32_t>(each.text.data() - spelling.data());
        break;
    }
  }
  if (pattern.op != Op::unknown && result.unknown_word == 0)
    result.verdict = validator_.judge(pattern, spelling, opcode.words);
  return result;
}

void Parser::parse_instruction(Offset at, Guard guard) {
  const Offset opcode_at = token_.at;
  const Offset opcode_end = lexer_.opcode_end(token_.end);
  const std::string_view spelling = module_.text.substr(opcode_at, opcode_end - opcode_at);
  DirectiveHead& decoded = head(spelling);
  lexer_.seek(opcode_end);
  token_.end = opcode_end;
  advance();

  Function& owner = function();
  if (decoded.pooled_in != function_) {
    decoded.pooled_in = function_;
    decoded.pattern.first_modifier = static_cast<uint32_t>(owner.modifier_pool.size());
    decoded.pattern.modifier_count = static_cast<uint8_t>(std::min<size_t>(decoded.modifiers.size(), 255));
    owner.modifier_pool.insert(owner.modifier_pool.end(), decoded.modifiers.begin(), decoded.modifiers.end());
  }
  Instruction instruction = decoded.pattern;
  instruction.spelling = spelling;
  instruction.guard = guard;
  instruction.at = at;
  instruction.opcode_at = opcode_at;
  instruction.location = location_;
  if (instruction.op == Op::unknown) {
    const std::string_view word = spelling.substr(0, spelling.find('.'));
    report(DiagnosticKind::unknown_opcode, opcode_at, opcode_at + static_cast<Offset>(word.size()),
           fmt::format("unknown instruction '{}'", word));
  } else if (decoded.unknown_word != 0) {
    const std::string_view rest = spelling.substr(decoded.unknown_word);
    const std::string_view word = rest.substr(0, rest.find_first_of(". \t"));
    report(DiagnosticKind::unknown_modifier, opcode_at + decoded.unknown_word,
           opcode_at + decoded.unknown_word + static_cast<Offset>(word.size()),
           fmt::format("unknown modifier '.{}' of '{}'", word, text(instruction.op)));
  }
  const size_t errors_before = diagnostics_.size();
  const bool complete = parse_operands(instruction.op, instruction);
  const bool readable =
      instruction.op != Op::unknown && decoded.unknown_word == 0 && complete && diagnostics_.size() == errors_before;
  const bool ended = complete && is(';');
  if (ended) {
    advance();
  } else if (complete) {
    unexpected(fmt::format("';' after '{}'", spelling));
    // If only the ';' is missing, the next statement is intact.
    if (!starts_line() && !is('}')) recover();
  } else {
    recover();
  }
  if (readable) {
    Mistake mistake;
    if (!validator_.check(function(), instruction, decoded.verdict, instruction.form, mistake)) {
      const Offset end = mistake.at == opcode_at ? opcode_end : mistake.at + 1;
      report(mistake.kind, mistake.at, end, std::move(mistake.message));
    }
  }
  auto& items = function().items;
  const auto id = static_cast<InstructionId>(function().instructions.size());
  function().instructions.push_back(instruction);
  if (!items.empty() && items.back().kind == Item::Kind::instruction) {
    ++items.back().count;
    items.back().end = previous_end_;
  } else {
    add_item(items, Item::Kind::instruction, id, at);
  }
}

}  // namespace ptxkit::ptx
