// Declarations: functions with their parameters and directives, variables with their initialisers, registers.
// PTX ISA 9.0, 5.4 (variables), 7.1 (function declarations), 11.2-11.4 and 11.6 (directives).
#include <bit>

#include <fmt/format.h>

#include "analyzer/ptx/parser.hpp"

namespace ptxkit::ptx {
namespace {

constexpr uint64_t kMaxVariableBytes = uint64_t{1} << 47;  // beyond every address space
constexpr uint64_t kMaxPaddingCount = 1 << 20;             // zeros that nested initialisers may leave out

// a * b, or kMaxVariableBytes + 1 where that is exceeded.
uint64_t bounded_product(uint64_t a, uint64_t b) {
  if (a == 0 || b == 0) return 0;
  return a > kMaxVariableBytes / b ? kMaxVariableBytes + 1 : a * b;
}

// Bits of `value` as an element of `type`, cut to its width as ptxas does; false where a float needs a float.
bool element_bits(const Constant& value, Type type, uint64_t& bits) {
  bits = value.bits;
  const bool floating = kind(type) == TypeKind::floating;
  if (floating && type != Type::f16 && type != Type::bf16) {
    if (value.is_integer()) return false;
    if (type == Type::f64) {
      bits = std::bit_cast<uint64_t>(value.as_double());
    } else if (value.kind == Constant::Kind::float32) {
      bits = value.bits;
    } else {
      bits = std::bit_cast<uint32_t>(static_cast<float>(value.as_double()));
    }
    return true;
  }
  const unsigned width = bit_width(type);
  if (value.is_integer() && width < 64) bits &= (uint64_t{1} << width) - 1;
  return true;
}

// Narrow and packed floats are instruction types only; their values live in registers of bits.
bool is_register_type(Type type) {
  switch (kind(type)) {
    case TypeKind::bits:
    case TypeKind::unsigned_int:
    case TypeKind::signed_int:
      return bit_width(type) >= 8;
    case TypeKind::predicate:
      return true;
    default:
      return type == Type::f16 || type == Type::f16x2 || type == Type::f32 || type == Type::f64;
  }
}

}  // namespace

void Parser::declare(std::string_view name, SymbolKind kind, uint32_t id, Offset at) {
  const Symbol* before = symbols_.bind(name, kind, id, at);
  if (before == nullptr) return;
  report(DiagnosticKind::duplicate_name, at, at + static_cast<Offset>(name.size()),
         fmt::format("'{}' is already declared in this scope, in line {}", name, module_.position(before->at).line));
}

// --- Registers -------------------------------------------------------------------------------------------------------

uint32_t Parser::declare_register(std::string_view name, uint32_t count, Type type, uint8_t vector, Offset at) {
  auto& all = function().register_declarations;
  const auto id = static_cast<uint32_t>(all.size());
  all.push_back({name, count, type, vector, at});
  range_ids_.push_back({});
  if (count == kNone) {
    uint32_t index = 0;
    const Symbol* range = symbols_.find_in_range(name, index, all);
    if (range != nullptr && range->depth == symbols_.depth()) {
      report(DiagnosticKind::duplicate_name, at, at + static_cast<Offset>(name.size()),
             fmt::format("'{}' is already declared in this scope, by '{}<{}>' in line {}", name, all[range->id].base,
                         all[range->id].count, module_.position(range->at).line));
    }
    declare(name, SymbolKind::reg, id, at);
  } else {
    if (const Symbol* plain = symbols_.find_plain_in_scope(name, count)) {
      report(DiagnosticKind::duplicate_name, at, at + static_cast<Offset>(name.size()),
             fmt::format("'{}<{}>' declares a name of this scope again, that of line {}", name, count,
                         module_.position(plain->at).line));
    }
    declare(name, SymbolKind::register_range, id, at);
  }
  return id;
}

RegId Parser::use_register(uint32_t declaration, uint32_t index) {
  RangeIds& range = range_ids_[declaration];
  const RegisterDeclaration& declared = function().register_declarations[declaration];
  const bool plain = declared.count == kNone;
  const uint32_t slot_count = plain ? 1 : declared.count;
  if (range.first_slot == kNone && slot_count <= slot_budget_) {
    slot_budget_ -= slot_count;
    range.first_slot = static_cast<uint32_t>(range_slots_.size());
    range_slots_.resize(range_slots_.size() + slot_count, kNone);
  }
  const uint32_t slot = plain ? 0 : index;
  RegId* id = nullptr;
  if (range.first_slot != kNone) {
    id = &range_slots_[range.first_slot + slot];
  } else {
    id = &sparse_ids_.try_emplace((uint64_t{declaration} << 32) | slot, kNone).first->second;
  }
  if (*id == kNone) {
    auto& registers = function().registers;
    *id = static_cast<RegId>(registers.size());
    registers.push_back(
        {declared.base, plain ? kNone : index, declared.type, declared.vector, declaration, declared.at});
  }
  return *id;
}

// .reg [.vN] .type name [<count>] {, ...};
void Parser::parse_registers(std::vector<Item>& items) {
  const Offset at = token_.at;
  advance();
  Variable prefix;
  prefix.space = Space::reg;
  const Offset type_at = token_.at;
  if (!parse_type_prefix(prefix, false)) return recover();
  if (!is_register_type(prefix.type) || prefix.vector > 4) {
    report(DiagnosticKind::bad_declaration, type_at, previous_end_,
           fmt::format("there are no registers of {}.{}", prefix.vector > 1 ? fmt::format(".v{} ", prefix.vector) : "",
                       text(prefix.type)));
  }
  const auto first = static_cast<uint32_t>(function().register_declarations.size());
  do {
    if (token_.kind != TokenKind::identifier) {
      unexpected("a register name");
      return recover();
    }
    const Token name = token_;
    const std::string_view text = here();
    advance();
    uint32_t count = kNone;
    if (accept('<')) {
      uint64_t value = 0;
      if (!parse_count(value, "a number of registers")) return recover();
      if (value >= kNone) {
        report(DiagnosticKind::limit_exceeded, name.at, previous_end_, "more than 4294967294 registers in one declaration");
        value = kNone - 1;
      }
      count = static_cast<uint32_t>(value);
      if (!expect('>', "the number of registers")) return recover();
    }
    declare_register(text, count, prefix.type, prefix.vector, name.at);
  } while (accept(','));
  if (!expect(';', "a register declaration")) recover();
  add_item(items, Item::Kind::registers, first, at,
           static_cast<uint32_t>(function().register_declarations.size()) - first);
}

// --- Variables -------------------------------------------------------------------------------------------------------

// .attribute(.managed), .attribute(.unified(a, b)), several separated by commas
bool Parser::parse_attribute(Qualifiers& qualifiers) {
  advance();
  if (!expect('(', "'.attribute'")) return false;
  do {
    if (accept_word(".managed")) {
      qualifiers.managed_or_unified |= 1;
    } else if (accept_word(".unified")) {
      qualifiers.managed_or_unified |= 2;
      if (!expect('(', "'.unified'") || !parse_count(qualifiers.unified_id[0], "an identifier")) return false;
      if (!expect(',', "the first half") || !parse_count(qualifiers.unified_id[1], "an identifier")) return false;
      if (!expect(')', "the second half")) return false;
    } else {
      unexpected("'.managed' or '.unified'");
      return false;
    }
  } while (accept(','));
  return expect(')', "the attributes");
}

// [.align N] [.vN] .type [.ptr [.space] [.align N]] in the orders that compilers write
bool Parser::parse_type_prefix(Variable& variable, bool allow_pointer) {
  const Offset at = token_.at;
  while (token_.kind == TokenKind::dot_word) {
    const std::string_view word = here().substr(1);
    if (word == "align") {
      advance();
      const Offset number_at = token_.at;
      uint64_t value = 0;
      if (!parse_count(value, "an alignment in bytes")) return false;
      if (value == 0 || (value & (value - 1)) != 0 || value > (1u << 30)) {
        report(DiagnosticKind::bad_declaration, number_at, previous_end_,
               fmt::format("alignment must be a power of two, found {}", value));
        value = 1;
      }
      (variable.is_pointer ? variable.pointer_align : variable.align) = static_cast<uint32_t>(value);
      continue;
    }
    if (word == "ptr" && allow_pointer) {
      variable.is_pointer = true;
      advance();
      continue;
    }
    const Word known = find_word(word);
    if (known.kind == Word::Kind::vector) {
      variable.vector = static_cast<uint8_t>(known.id);
    } else if (known.kind == Word::Kind::type) {
      variable.type = static_cast<Type>(known.id);
    } else if (known.kind == Word::Kind::space && variable.is_pointer) {
      variable.pointer_space = static_cast<Space>(known.id);
    } else {
      unexpected("a type");
      return false;
    }
    advance();
  }
  if (variable.type != Type::none) return true;
  report(DiagnosticKind::bad_declaration, at, token_.end, fmt::format("expected a type such as .b32, found {}", found()));
  return false;
}

bool Parser::parse_array_suffix(Variable& variable) {
  while (accept('[')) {
    variable.is_array = true;
    uint64_t count = 0;
    if (!is(']')) {
      if (!parse_count(count, "an array size")) return false;
    } else {
      variable.is_unsized = true;
    }
    variable.dimensions.push_back(count);
    if (!expect(']', "the array size")) return false;
  }
  return true;
}

void Parser::finish_size(Variable& variable) {
  const uint64_t element = uint64_t{byte_width(variable.type)} * variable.vector;
  if (variable.align == 0) variable.align = static_cast<uint32_t>(element == 0 ? 1 : std::bit_ceil(element));
  uint64_t size = element;
  for (const uint64_t count : variable.dimensions) size = bounded_product(size, count);
  if (size > kMaxVariableBytes) {
    report(DiagnosticKind::limit_exceeded, variable.declared_at,
           variable.declared_at + static_cast<Offset>(variable.name.size()),
           fmt::format("'{}' is larger than any address space", variable.name));
    size = 0;
  }
  variable.size_bytes = variable.is_unsized ? 0 : size;
}

bool Parser::parse_variables(const Qualifiers& qualifiers, Space space, std::vector<Item>& items) {
  Qualifiers all = qualifiers;
  while (is_word(".attribute")) {
    if (!parse_attribute(all)) return false;
  }
  Variable prefix;
  prefix.space = space;
  prefix.linkage = all.linkage;
  prefix.managed_or_unified = all.managed_or_unified;
  prefix.unified_id[0] = all.unified_id[0];
  prefix.unified_id[1] = all.unified_id[1];
  prefix.function = function_;
  if (!parse_type_prefix(prefix, false)) return false;
  const auto first = static_cast<uint32_t>(module_.variables.size());
  do {
    if (token_.kind != TokenKind::identifier) {
      unexpected("a variable name");
      return false;
    }
    Variable variable = prefix;
    variable.name = here();
    variable.declared_at = token_.at;
    advance();
    if (accept('<')) {  // `.param .b32 x<4>;`: a family of variables, which PTX has only for registers
      report(DiagnosticKind::bad_declaration, variable.declared_at, token_.end, "only registers are declared with '<count>'");
      return false;
    }
    if (!parse_array_suffix(variable)) return false;
    finish_size(variable);
    const auto id = static_cast<VariableId>(module_.variables.size());
    // An extern declaration and the definition are two variables of one name; the definition is the one meant from
    // there on, so the name is bound to the first and the second completes it.
    const Symbol* before = symbols_.find(variable.name);
    if (prefix.type == Type::pred) {
      report(DiagnosticKind::bad_declaration, variable.declared_at, previous_end_,
             fmt::format("'{}' is a predicate, which only registers hold", variable.name));
    }
    if (prefix.linkage == Linkage::common && space != Space::global) {
      report(DiagnosticKind::bad_declaration, variable.declared_at, previous_end_,
             fmt::format("'{}' is .common, which only .global variables are", variable.name));
    }
    if (variable.is_unsized && prefix.linkage != Linkage::external && !is('=')) {
      report(DiagnosticKind::bad_declaration, variable.declared_at, previous_end_,
             fmt::format("'{}' has no size, which only .extern variables lack", variable.name));
    }
    const bool completes = before != nullptr && before->kind == SymbolKind::variable && before->depth == symbols_.depth() &&
                           (variable.linkage == Linkage::external ||
                            module_.variables[before->id].linkage == Linkage::external);
    if (completes && (module_.variables[before->id].type != variable.type || module_.variables[before->id].space != space)) {
      report(DiagnosticKind::signature_mismatch, variable.declared_at, previous_end_,
             fmt::format("'{}' was declared with another type or space in line {}", variable.name,
                         module_.position(before->at).line));
    }
    module_.variables.push_back(std::move(variable));
    Variable& stored = module_.variables.back();
    if (!completes) declare(stored.name, SymbolKind::variable, id, stored.declared_at);
    if (accept('=')) parse_initializer(stored);
    if (completes && stored.linkage != Linkage::external) module_.variables[before->id] = stored;
    if (function_ != kNone) function().variables.push_back(id);
  } while (accept(','));
  const bool closed = expect(';', "a variable declaration");
  add_item(items, Item::Kind::variable, first, all.at, static_cast<uint32_t>(module_.variables.size()) - first);
  return closed;
}

// --- Initialisers ----------------------------------------------------------------------------------------------------

void Parser::parse_initializer(Variable& variable) {
  if (variable.space != Space::global && variable.space != Space::constant) {
    report_here(DiagnosticKind::bad_initializer,
                fmt::format("only .global and .const variables have initialisers, '{}' is in .{}", variable.name,
                            text(variable.space)));
  }
  if (kind(variable.type) == TypeKind::opaque) return parse_opaque_initializer();
  const Offset at = token_.at;
  if (is('{')) {
    parse_initializer_list(variable, 0, 0);
  } else {
    parse_initializer_element(variable);
  }
  const auto count = static_cast<uint64_t>(variable.initializer.size());
  const uint64_t element = byte_width(variable.type);
  if (variable.is_unsized && variable.dimensions.size() == 1) {
    variable.dimensions[0] = (count + variable.vector - 1) / variable.vector;
    variable.is_unsized = false;
    variable.size_bytes = variable.dimensions[0] * element * variable.vector;
  } else if (element != 0 && !variable.is_unsized && count > variable.size_bytes / element) {
    report(DiagnosticKind::bad_initializer, at, previous_end_,
           fmt::format("{} initialiser elements for the {} of '{}'", count, variable.size_bytes / element, variable.name));
  }
}

// { field = value, ... } of a texture, sampler or surface
void Parser::parse_opaque_initializer() {
  unsigned nesting = 0;
  while (token_.kind != TokenKind::end && !is(';')) {
    if (is('{')) ++nesting;
    if (is('}') && --nesting == 0) return advance();
    advance();
  }
}

void Parser::parse_initializer_list(Variable& variable, size_t depth, unsigned nesting) {
  advance();
  if (nesting > kMaxNesting) {
    report_here(DiagnosticKind::limit_exceeded, fmt::format("initialiser lists nest deeper than {}", kMaxNesting));
    return;
  }
  const size_t start = variable.initializer.size();
  while (token_.kind != TokenKind::end && !is('}') && !is(';')) {
    if (is('{')) {
      parse_initializer_list(variable, depth + 1, nesting + 1);
    } else {
      parse_initializer_element(variable);
    }
    if (!accept(',')) break;
  }
  if (!expect('}', "the initialiser list")) return;
  if (nesting == 0) return;
  uint64_t row = variable.vector;
  for (size_t i = depth; i < variable.dimensions.size(); ++i) row = bounded_product(row, variable.dimensions[i]);
  const uint64_t written = variable.initializer.size() - start;
  if (written >= row) return;
  if (row - written > kMaxPaddingCount) {
    report(DiagnosticKind::limit_exceeded, previous_end_ - 1, previous_end_,
           fmt::format("an initialiser list leaves out more than {} elements", kMaxPaddingCount));
    return;
  }
  variable.initializer.resize(start + row);
}

void Parser::parse_initializer_element(Variable& variable) {
  Initializer element;
  const Token start = token_;
  // 0xff00(symbol): one byte of the address
  if (token_.kind == TokenKind::number && lexer_.peek() == '(') {
    Constant mask;
    if (!parse_number(mask) || !accept('(')) return;
    const unsigned byte = static_cast<unsigned>(std::countr_zero(mask.bits)) / 8 % 8;
    element.mask_shift = static_cast<uint8_t>(byte);
    if (mask.bits != uint64_t{0xff} << (byte * 8)) {
      report(DiagnosticKind::bad_initializer, start.at, start.end, "expected a mask of one byte such as 0xff00");
    }
  }
  const bool masked = element.mask_shift != 0xff;
  if (token_.kind == TokenKind::identifier && here() != "WARP_SZ") {
    if (here() == "generic" && lexer_.peek() == '(') {
      element.generic = true;
      advance();
      advance();
    }
    const Symbol* symbol = token_.kind == TokenKind::identifier ? symbols_.find(here()) : nullptr;
    if (symbol != nullptr && symbol->kind == SymbolKind::variable) {
      element.kind = Initializer::Kind::variable;
      element.id = symbol->id;
    } else if (symbol != nullptr && symbol->kind == SymbolKind::function) {
      element.kind = Initializer::Kind::function;
      element.id = symbol->id;
    } else if (token_.kind == TokenKind::identifier) {
      report_here(DiagnosticKind::undeclared_name, fmt::format("'{}' is not declared before its use here", here()));
    } else {
      unexpected("a symbol");
      return;
    }
    advance();
    if (element.generic && !expect(')', "the symbol")) return;
    if (is('+') || is('-')) {
      const bool minus = is('-');
      advance();
      Constant offset;
      if (!parse_constant(offset)) return;
      element.value = minus ? 0 - offset.bits : offset.bits;
    }
  } else {
    Constant value;
    if (!parse_constant(value)) return;
    if (!element_bits(value, variable.type, element.value)) {
      report(DiagnosticKind::bad_initializer, start.at, previous_end_,
             fmt::format("expected a float such as 1.0 or 0f3f800000 for .{}, found an integer", text(variable.type)));
    }
  }
  if (masked && !expect(')', "the masked symbol")) return;
  variable.initializer.push_back(element);
}

// --- Functions -------------------------------------------------------------------------------------------------------

bool Parser::parse_parameter_list(std::vector<VariableId>& list, char close, bool is_entry) {
  if (accept(close)) return true;
  do {
    Variable parameter;
    if (accept_word(".param")) {
      parameter.space = Space::param;
    } else if (!is_entry && accept_word(".reg")) {
      parameter.space = Space::reg;
    } else {
      unexpected(is_entry ? "'.param'" : "'.param' or '.reg'");
      return false;
    }
    if (!parse_type_prefix(parameter, is_entry)) return false;
    // `_` or nothing is the name of a prototype's parameter.
    if (token_.kind == TokenKind::identifier) {
      parameter.name = here();
      parameter.declared_at = token_.at;
      advance();
    } else {
      parameter.declared_at = previous_end_;
    }
    if (!parse_array_suffix(parameter)) return false;
    finish_size(parameter);
    parameter.parameter_index = static_cast<uint32_t>(list.size());
    list.push_back(static_cast<VariableId>(module_.variables.size()));
    module_.variables.push_back(std::move(parameter));
  } while (accept(','));
  return expect(close, "the parameters");
}

unsigned Parser::parse_dimensions(uint32_t (&out)[3]) {
  unsigned count = 0;
  do {
    const Offset at = token_.at;
    uint64_t value = 0;
    if (!parse_count(value, "a number")) return count;
    if (count == 3) {
      report(DiagnosticKind::bad_declaration, at, previous_end_, "expected at most three dimensions");
      return count;
    }
    if (value == 0 || value > 0xffffffff) {
      report(DiagnosticKind::bad_declaration, at, previous_end_, fmt::format("expected a positive number, found {}", value));
      value = 1;
    }
    out[count++] = static_cast<uint32_t>(value);
  } while (accept(','));
  for (unsigned i = count; i < 3; ++i) out[i] = 1;
  return count;
}

// False where the current token is no directive of a function.
bool Parser::parse_function_directive(FunctionAttributes& attributes) {
  if (token_.kind != TokenKind::dot_word) return false;
  const Offset at = token_.at;
  const std::string_view word = here();
  struct Number {
    std::string_view word;
    uint32_t FunctionAttributes::*field;
  };
  static constexpr Number kNumbers[] = {{".minnctapersm", &FunctionAttributes::min_ctas_per_sm},
                                        {".maxnctapersm", &FunctionAttributes::max_ctas_per_sm},
                                        {".maxnreg", &FunctionAttributes::max_registers},
                                        {".maxclusterrank", &FunctionAttributes::max_cluster_rank}};
  for (const Number& number : kNumbers) {
    if (word != number.word) continue;
    advance();
    uint64_t value = 0;
    if (parse_count(value, "a number")) attributes.*number.field = static_cast<uint32_t>(value);
    return true;
  }
  if (word == ".maxntid" || word == ".reqntid" || word == ".reqnctapercluster") {
    advance();
    parse_dimensions(word == ".maxntid"   ? attributes.max_ntid
                     : word == ".reqntid" ? attributes.req_ntid
                                          : attributes.req_cluster);
    return true;
  }
  if (word == ".explicitcluster") {
    attributes.explicit_cluster = true;
  } else if (word == ".blocksareclusters") {
    attributes.blocks_are_clusters = true;
  } else if (word == ".noreturn") {
    attributes.no_return = true;
  } else if (word == ".pragma") {
    advance();
    while (token_.kind == TokenKind::string || is(',')) advance();
    expect(';', "'.pragma'");
    attributes.others.push_back(module_.text.substr(at, previous_end_ - at));
    return true;
  } else if (word == ".abi_preserve" || word == ".abi_preserve_control") {
    advance();
    uint64_t ignored = 0;
    parse_count(ignored, "a number of registers");
    attributes.others.push_back(module_.text.substr(at, previous_end_ - at));
    return true;
  } else {
    return false;
  }
  advance();
  return true;
}

void Parser::check_signature(const Function& before, const Function& now, Offset at) {
  const auto differ = [&](const std::vector<VariableId>& a, const std::vector<VariableId>& b) {
    if (a.size() != b.size()) return true;
    for (size_t i = 0; i < a.size(); ++i) {
      const Variable& x = module_.variables[a[i]];
      const Variable& y = module_.variables[b[i]];
      if (x.space != y.space || x.type != y.type || x.size_bytes != y.size_bytes || x.is_unsized != y.is_unsized) return true;
    }
    return false;
  };
  if (before.is_entry == now.is_entry && !differ(before.parameters, now.parameters) && !differ(before.results, now.results)) {
    return;
  }
  report(DiagnosticKind::signature_mismatch, at, at + static_cast<Offset>(now.name.size()),
         fmt::format("'{}' was declared with other parameters or results in line {}", now.name,
                     module_.position(before.at).line));
}

// Directives that contradict each other, or the kind of function they stand at.
void Parser::check_attributes(const Function& now, Offset at) {
  const FunctionAttributes& a = now.attributes;
  const bool sized = a.max_ntid[0] != 0 || a.req_ntid[0] != 0 || a.min_ctas_per_sm != 0 || a.max_registers != 0 ||
                     a.req_cluster[0] != 0 || a.max_cluster_rank != 0 || a.explicit_cluster;
  if (!now.is_entry && sized) {
    report(DiagnosticKind::misplaced_directive, at, previous_end_,
           fmt::format("'{}' is no entry, only entries have launch bounds", now.name));
  }
  if (now.is_entry && a.no_return) {
    report(DiagnosticKind::misplaced_directive, at, previous_end_,
           fmt::format("'{}' is an entry, only functions are .noreturn", now.name));
  }
  if (a.max_ntid[0] != 0 && a.req_ntid[0] != 0) {
    report(DiagnosticKind::bad_declaration, at, previous_end_, "'.maxntid' and '.reqntid' exclude each other");
  }
}

void Parser::parse_function(const Qualifiers& qualifiers, bool is_entry) {
  advance();
  Qualifiers all = qualifiers;
  while (is_word(".attribute")) {
    if (!parse_attribute(all)) return recover();
  }
  Function now;
  now.at = all.at;
  now.is_entry = is_entry;
  now.linkage = all.linkage;
  bool readable = true;
  if (!is_entry && accept('(')) readable = parse_parameter_list(now.results, ')', false);
  if (!readable || token_.kind != TokenKind::identifier) {
    if (readable) unexpected(is_entry ? "the name of the entry" : "the name of the function");
    recover();
    if (is('{') || is('}')) advance();
    return;
  }
  now.name = here();
  const Token name = token_;
  advance();
  if (accept('(')) readable = parse_parameter_list(now.parameters, ')', is_entry);
  // A broken parameter list still leaves a body worth reading.
  while (!readable && token_.kind != TokenKind::end && !is('{') && !is(';') && !is('}')) advance();
  const Offset directives_at = token_.at;
  while (parse_function_directive(now.attributes)) {
  }
  check_attributes(now, directives_at);
  if (!is(';') && !is('{')) {
    if (token_.kind == TokenKind::dot_word) {
      report_here(DiagnosticKind::unknown_directive, fmt::format("'{}' is not a directive of a function", here()));
    } else {
      unexpected("'{' or ';' after the function's head");
    }
    while (token_.kind != TokenKind::end && !is('{') && !is(';') && !is('}')) advance();
  }
  now.has_body = is('{');

  const Symbol* before = symbols_.find(now.name);
  FunctionId id = static_cast<FunctionId>(module_.functions.size());
  if (before != nullptr && before->kind == SymbolKind::function) {
    Function& known = module_.functions[before->id];
    check_signature(known, now, name.at);
    if (!known.has_body) {
      id = before->id;
      if (now.linkage == Linkage::internal) now.linkage = known.linkage;
      if (!now.has_body && now.linkage == Linkage::external) now.linkage = known.linkage;
      known = std::move(now);
    } else {
      declare(now.name, SymbolKind::function, id, name.at);
      module_.functions.push_back(std::move(now));
    }
  } else {
    declare(now.name, SymbolKind::function, id, name.at);
    module_.functions.push_back(std::move(now));
  }
  for (const VariableId v : module_.functions[id].results) module_.variables[v].function = id;
  for (const VariableId v : module_.functions[id].parameters) module_.variables[v].function = id;
  if (!is('{')) {
    accept(';');
    return add_item(module_.items, Item::Kind::function, id, all.at);
  }
  function_ = id;
  location_ = kNone;
  range_ids_.clear();
  range_slots_.clear();
  sparse_ids_.clear();
  slot_budget_ = module_.text.size() / 4 + 4096;
  open_scope();
  for (const auto* list : {&function().results, &function().parameters}) {
    for (const VariableId v : *list) {
      const Variable& variable = module_.variables[v];
      if (variable.name.empty() || variable.name == "_") continue;
      if (variable.space == Space::reg) {
        declare_register(variable.name, kNone, variable.type, variable.vector, variable.declared_at);
      } else {
        declare(variable.name, SymbolKind::variable, v, variable.declared_at);
      }
    }
  }
  parse_body();
  function().end = previous_end_;
  function_ = kNone;
  location_ = kNone;
  add_item(module_.items, Item::Kind::function, id, all.at);
}

}  // namespace ptxkit::ptx
