// Declarations: functions with their parameters and directives, variables with their initialisers, registers.
// PTX ISA 9.0, 5.4 (variables), 7.1 (function declarations), 11.2-11.4 and 11.6 (directives).
#include <algorithm>
#include <bit>
#include <string>
#include <string_view>
#include <utility>
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

// Bits and integers of at least a byte, and the floats that have register types.
bool is_declared_type(Type type) {
  switch (kind(type)) {
    case TypeKind::bits:
    case TypeKind::unsigned_int:
    case TypeKind::signed_int:
      return bit_width(type) >= 8;
    default:
      return type == Type::f16 || type == Type::f16x2 || type == Type::f32 || type == Type::f64;
  }
}

}  // namespace

uint64_t bounded_product(uint64_t a, uint64_t b) {
  if (a == 0 || b == 0) return 0;
  return a > kMaxVariableBytes / b ? kMaxVariableBytes + 1 : a * b;
}

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
  if (!parse_type_prefix(prefix, false, nullptr)) return recover();
  auto& all = function_ != kNone ? function().register_declarations : module_registers_;
  const auto first = static_cast<uint32_t>(all.size());
  do {
    if (!is_name()) {
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
        report(DiagnosticKind::limit_exceeded, name.at, previous_end_,
               "more than 4294967294 registers in one declaration");
        value = kNone - 1;
      }
      count = static_cast<uint32_t>(value);
      if (!expect('>', "the number of registers")) return recover();
    }
    if (function_ != kNone) {
      declare_register(text, count, prefix.type, prefix.vector, name.at);
    } else {
      all.push_back({text, count, prefix.type, prefix.vector, name.at});
    }
  } while (accept(','));
  if (!expect(';', "a register declaration")) recover();
  if (function_ == kNone) return add_item(items, Item::Kind::section_text, kNone, at);
  add_item(items, Item::Kind::registers, first, at, static_cast<uint32_t>(all.size()) - first);
}

// --- Variables -------------------------------------------------------------------------------------------------------

// .attribute(.managed), .attribute(.unified(a, b)), several separated by commas
bool Parser::parse_attribute(Qualifiers& qualifiers) {
  require_level(".attribute", token_.at, token_.end);
  advance();
  if (!expect('(', "'.attribute'")) return false;
  do {
    if (accept_word(".managed")) {
      qualifiers.managed_or_unified |= 1;
    } else if (accept_word(".unified")) {
      require_level(".attribute(.unified)", token_.at, previous_end_);
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

// .align N
bool Parser::parse_alignment(uint32_t& align) {
  advance();
  const Offset at = token_.at;
  uint64_t value = 0;
  if (!parse_count(value, "an alignment in bytes")) return false;
  if (value == 0 || (value & (value - 1)) != 0 || value > (1u << 30)) {
    report(DiagnosticKind::bad_declaration, at, previous_end_,
           fmt::format("alignment must be a power of two, found {}", value));
    value = 1;
  }
  align = static_cast<uint32_t>(value);
  return true;
}

// {.align N | .attribute(...)} [.vN] .type [.ptr [.space] [.align N]]. Attributes and pointers are accepted only where
// the declaration allows them.
bool Parser::parse_type_prefix(Variable& variable, bool allow_pointer, Qualifiers* attributes) {
  for (;;) {
    if (is_word(".align")) {
      if (!parse_alignment(variable.align)) return false;
    } else if (attributes != nullptr && is_word(".attribute")) {
      if (!parse_attribute(*attributes)) return false;
    } else {
      break;
    }
  }
  const Offset at = token_.at;
  Word word = token_.kind == TokenKind::dot_word ? find_word(here().substr(1)) : Word();
  if (word.kind == Word::Kind::vector && word.id != 8) {
    variable.vector = static_cast<uint8_t>(word.id);
    advance();
    word = token_.kind == TokenKind::dot_word ? find_word(here().substr(1)) : Word();
  }
  if (word.kind != Word::Kind::type) {
    report(DiagnosticKind::bad_declaration, at, token_.end,
           fmt::format("expected a type such as .b32, found {}", found()));
    return false;
  }
  variable.type = static_cast<Type>(word.id);
  advance();
  check_type(variable, at);
  if (!allow_pointer || !is_word(".ptr")) return true;
  require_level(".ptr", token_.at, token_.end);
  variable.is_pointer = true;
  advance();
  if (is_word(".global") || is_word(".shared") || is_word(".const") || is_word(".local")) {
    variable.pointer_space = static_cast<Space>(find_word(here().substr(1)).id);
    advance();
  }
  return !is_word(".align") || parse_alignment(variable.pointer_align);
}

// Types of memory and registers. Narrow and packed floats are types of instructions only.
void Parser::check_type(const Variable& variable, Offset at) {
  const auto refuse = [&](std::string message) {
    report(DiagnosticKind::bad_declaration, at, previous_end_, std::move(message));
  };
  const Type type = variable.type;
  if (kind(type) == TypeKind::opaque) {
    require_level("a texture, sampler or surface", at, previous_end_);
    if (variable.vector > 1 || (variable.space != Space::global && variable.space != Space::param)) {
      refuse(fmt::format("a .{} is a single variable in .global or a parameter of an entry", text(type)));
    } else if (function_ != kNone) {
      refuse(fmt::format("a .{} is declared at module level or as a parameter of an entry", text(type)));
    } else if (type == Type::samplerref && !is_texmode_independent()) {
      refuse("a .samplerref needs '.target texmode_independent'");
    }
    return;
  }
  if (type == Type::pred) {
    if (variable.space != Space::reg || variable.vector > 1) refuse("a .pred is a single register");
    return;
  }
  if (!is_declared_type(type)) {
    return refuse(fmt::format("there are no variables of .{}, it is a type of instructions only", text(type)));
  }
  if (variable.space == Space::param && (variable.vector > 1 || type == Type::f16x2)) {
    return refuse(fmt::format("there are no parameters of {}.{}",
                              variable.vector > 1 ? fmt::format(".v{} ", variable.vector) : "", text(type)));
  }
  if (variable.vector * bit_width(type) > 128) {
    return refuse(fmt::format("a vector has at most 128 bits, found .v{} .{}", variable.vector, text(type)));
  }
  if (type == Type::b128) require_level("type .b128", at, previous_end_);
  if (type == Type::f16x2) require_level("type .f16x2", at, previous_end_);
}

bool Parser::parse_array_suffix(Variable& variable) {
  while (accept('[')) {
    uint64_t count = 0;
    if (is(']') && !variable.is_array) {
      variable.is_unsized = true;
    } else {
      const Offset at = token_.at;
      if (!parse_count(count, "an array size")) return false;
      if (count == 0 && variable.is_array) {
        report(DiagnosticKind::bad_declaration, at, previous_end_,
               "only the first size of an array may be left open, found 0");
      }
      variable.is_unsized |= count == 0 && !variable.is_array;
    }
    variable.is_array = true;
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

// Checks the rules of the variable's space and linking directive. The variable's size must be known.
void Parser::check_variable(const Variable& variable) {
  const auto refuse = [&](std::string message) {
    report(DiagnosticKind::bad_declaration, variable.declared_at, previous_end_, std::move(message));
  };
  if (variable.linkage == Linkage::common && variable.space != Space::global) {
    refuse(fmt::format("'{}' is .common, which only .global variables are", variable.name));
  }
  if ((variable.managed_or_unified & 1) != 0 && variable.space != Space::global) {
    refuse(fmt::format("'{}' is .managed, which only .global variables are", variable.name));
  }
  if (variable.is_unsized && variable.linkage != Linkage::external && !is('=')) {
    refuse(fmt::format("'{}' has no size, which only .extern variables lack", variable.name));
  }
  if (variable.space == Space::tex) {
    if (version() >= 15) {
      report(DiagnosticKind::needs_version, variable.declared_at, previous_end_,
             "'.tex' is not known from '.version 1.5' on, '.global .texref' replaces it");
    }
    if (variable.is_array || (variable.type != Type::u32 && variable.type != Type::u64)) {
      refuse(fmt::format("'{}' is in .tex and must be one .u32 or .u64", variable.name));
    }
  }
}

// A variable may be declared .extern several times, before and after its definition. The tree has all of them; the name
// is bound to the first, which the definition completes.
void Parser::declare_variable(Variable variable) {
  const Symbol* before = symbols_.find(variable.name);
  const auto id = static_cast<VariableId>(module_.variables.size());
  bool completes = false;
  if (before != nullptr && before->kind == SymbolKind::variable && before->depth == symbols_.depth()) {
    const Variable& known = module_.variables[before->id];
    completes = known.linkage == Linkage::external || variable.linkage == Linkage::external;
    const bool sizes_differ = !known.is_unsized && !variable.is_unsized && known.size_bytes != variable.size_bytes;
    if (completes && (known.type != variable.type || known.space != variable.space || sizes_differ)) {
      report(DiagnosticKind::signature_mismatch, variable.declared_at, previous_end_,
             fmt::format("'{}' was declared with another type, size or space in line {}", variable.name,
                         module_.position(before->at).line));
    } else if (completes && known.linkage == Linkage::external && variable.linkage == Linkage::internal) {
      report(DiagnosticKind::signature_mismatch, variable.declared_at, previous_end_,
             fmt::format(
                 "'{}' was declared .extern in line {}, a variable without '.visible' or '.weak' does not define it",
                 variable.name, module_.position(before->at).line));
    }
  }
  if (is('=')) {
    if (variable.linkage == Linkage::external) {
      report_here(DiagnosticKind::bad_initializer,
                  fmt::format("'{}' is .extern and has no initialiser", variable.name));
    }
    advance();
    parse_initializer(variable);
  }
  module_.variables.push_back(std::move(variable));
  const Variable& stored = module_.variables.back();
  if (!completes) {
    declare(stored.name, SymbolKind::variable, id, stored.declared_at);
  } else if (stored.linkage != Linkage::external) {
    module_.variables[before->id] = stored;
  }
  if (function_ != kNone) function().variables.push_back(id);
}

// `.param .b32 x<4>;` declares x0 to x3.
bool Parser::declare_family(const Variable& variable) {
  const Offset at = token_.at;
  uint64_t count = 0;
  if (!parse_count(count, "a number of variables") || !expect('>', "the number of variables")) return false;
  if (count > kMaxFamily || family_budget_ < count) {
    report(DiagnosticKind::limit_exceeded, at, previous_end_,
           fmt::format("more than {} variables in one declaration", kMaxFamily));
    return true;
  }
  family_budget_ -= count;
  for (uint64_t i = 0; i < count; ++i) {
    Variable member = variable;
    module_.made_names.push_back(fmt::format("{}{}", variable.name, i));
    member.name = module_.made_names.back();
    finish_size(member);
    check_variable(member);
    declare_variable(std::move(member));
  }
  return true;
}

bool Parser::parse_variables(const Qualifiers& qualifiers, Space space, std::vector<Item>& items) {
  Qualifiers all = qualifiers;
  Variable prefix;
  prefix.space = space;
  prefix.linkage = all.linkage;
  prefix.function = function_;
  if (!parse_type_prefix(prefix, false, &all)) return false;
  prefix.managed_or_unified = all.managed_or_unified;
  prefix.unified_id[0] = all.unified_id[0];
  prefix.unified_id[1] = all.unified_id[1];
  const auto first = static_cast<uint32_t>(module_.variables.size());
  do {
    if (!is_name()) {
      unexpected("a variable name");
      return false;
    }
    Variable variable = prefix;
    variable.name = here();
    variable.declared_at = token_.at;
    advance();
    if (accept('<')) {
      if (!declare_family(variable)) return false;
      continue;
    }
    if (!parse_array_suffix(variable)) return false;
    finish_size(variable);
    check_variable(variable);
    declare_variable(std::move(variable));
  } while (accept(','));
  const bool closed = expect(';', "a variable declaration");
  add_item(items, Item::Kind::variable, first, all.at, static_cast<uint32_t>(module_.variables.size()) - first);
  return closed;
}

// --- Functions -------------------------------------------------------------------------------------------------------

void Parser::check_parameter(const Variable& parameter, ListOf of, const std::vector<VariableId>& before) {
  const auto refuse = [&](std::string message) {
    report(DiagnosticKind::bad_declaration, parameter.declared_at, previous_end_, std::move(message));
  };
  const bool are_results = of == ListOf::results || of == ListOf::prototype_results;
  if (!before.empty()) {
    const Variable& last = module_.variables[before.back()];
    if (are_results && (last.space == Space::param || parameter.space == Space::param)) {
      refuse("several results need the space .reg");
    }
    if (last.is_unsized) refuse(fmt::format("only the last parameter may be without a size, '{}' is not", last.name));
  }
  if (parameter.is_unsized) {
    if (of == ListOf::entry || are_results) {
      refuse(fmt::format("'{}' has no size, which only the last parameter of a function lacks", parameter.name));
    } else {
      require_level("a parameter without a size", parameter.declared_at, previous_end_);
    }
  }
  if (parameter.space == Space::reg && parameter.is_array)
    refuse(fmt::format("'{}' is a register and cannot be an array", parameter.name));
  if (parameter.space == Space::param && of != ListOf::entry) {
    require_level("a parameter of a function in .param", parameter.declared_at, previous_end_);
  }
  if (of == ListOf::entry && parameter.dimensions.size() > 1) {
    refuse(fmt::format("'{}' is a parameter of an entry, which has one dimension", parameter.name));
  }
  if (kind(parameter.type) == TypeKind::opaque && of != ListOf::entry) {
    refuse(fmt::format("'{}' is a .{}, which only entries take", parameter.name, text(parameter.type)));
  }
  if (parameter.is_pointer && of != ListOf::entry) {
    refuse(fmt::format("'{}' is .ptr, which only parameters of entries are", parameter.name));
  }
}

// Parses the parameters and the ')', after the '('.
bool Parser::parse_parameter_list(std::vector<VariableId>& list, ListOf of) {
  const bool is_prototype = of == ListOf::prototype || of == ListOf::prototype_results;
  if (accept(')')) return true;
  do {
    Variable parameter;
    if (accept_word(".param")) {
      parameter.space = Space::param;
    } else if (of != ListOf::entry && accept_word(".reg")) {
      parameter.space = Space::reg;
    } else {
      unexpected(of == ListOf::entry ? "'.param'" : "'.param' or '.reg'");
      return false;
    }
    if (!parse_type_prefix(parameter, true, nullptr)) return false;
    if (of == ListOf::entry && is_word(".align") && !parse_alignment(parameter.align)) return false;
    if (!is_name() && !(is_prototype && token_.kind == TokenKind::identifier)) {
      unexpected(is_prototype ? "'_' or the name of a parameter" : "the name of a parameter");
      return false;
    }
    parameter.name = here();
    parameter.declared_at = token_.at;
    advance();
    if (!parse_array_suffix(parameter)) return false;
    finish_size(parameter);
    check_parameter(parameter, of, list);
    parameter.parameter_index = static_cast<uint32_t>(list.size());
    list.push_back(static_cast<VariableId>(module_.variables.size()));
    module_.variables.push_back(std::move(parameter));
  } while (accept(','));
  return expect(')', "the parameters");
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
      report(DiagnosticKind::bad_declaration, at, previous_end_,
             fmt::format("expected a positive number, found {}", value));
      value = 1;
    }
    out[count++] = static_cast<uint32_t>(value);
  } while (accept(','));
  for (unsigned i = count; i < 3; ++i) out[i] = 1;
  return count;
}

// Returns false where the current token is not a directive of a function.
bool Parser::parse_function_directive(FunctionAttributes& attributes, ListOf of) {
  if (token_.kind != TokenKind::dot_word) return false;
  const Offset at = token_.at;
  const std::string_view word = here();
  struct Number {
    std::string_view word;
    uint32_t FunctionAttributes::* field;
  };
  static constexpr Number kNumbers[] = {{".minnctapersm", &FunctionAttributes::min_ctas_per_sm},
                                        {".maxnctapersm", &FunctionAttributes::max_ctas_per_sm},
                                        {".maxnreg", &FunctionAttributes::max_registers},
                                        {".maxclusterrank", &FunctionAttributes::max_cluster_rank}};
  for (const Number& number : kNumbers) {
    if (word != number.word) continue;
    if (word != ".maxnctapersm") {
      require_level(word, at, token_.end);
    } else if (version() >= 21) {
      report_here(DiagnosticKind::needs_version,
                  "'.maxnctapersm' is not known from '.version 2.1' on, '.minnctapersm' replaces it");
    }
    advance();
    uint64_t value = 0;
    if (parse_count(value, "a number")) attributes.*number.field = static_cast<uint32_t>(value);
    return true;
  }
  if (word == ".maxntid" || word == ".reqntid" || word == ".reqnctapercluster") {
    require_level(word, at, token_.end);
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
  } else if (word == ".pragma" && of == ListOf::entry) {
    std::vector<Item> unused;
    parse_pragma(unused);
    attributes.others.push_back(module_.text.substr(at, previous_end_ - at));
    return true;
  } else if ((word == ".abi_preserve" || word == ".abi_preserve_control") && of != ListOf::entry) {
    require_level(word, at, token_.end);
    advance();
    uint64_t ignored = 0;
    parse_count(ignored, "a number of registers");
    attributes.others.push_back(module_.text.substr(at, previous_end_ - at));
    return true;
  } else {
    return false;
  }
  require_level(word, at, token_.end);
  advance();
  return true;
}

void Parser::check_signature(const Function& before, const Function& now, Offset at) {
  const auto differ = [&](const std::vector<VariableId>& a, const std::vector<VariableId>& b) {
    if (a.size() != b.size()) return true;
    for (size_t i = 0; i < a.size(); ++i) {
      const Variable& x = module_.variables[a[i]];
      const Variable& y = module_.variables[b[i]];
      if (x.space != y.space || x.type != y.type || x.size_bytes != y.size_bytes || x.is_unsized != y.is_unsized ||
          x.align != y.align) {
        return true;
      }
    }
    return false;
  };
  if (before.is_entry == now.is_entry && !differ(before.parameters, now.parameters) &&
      !differ(before.results, now.results)) {
    return;
  }
  report(DiagnosticKind::signature_mismatch, at, at + static_cast<Offset>(now.name.size()),
         fmt::format("'{}' was declared with other parameters or results in line {}", now.name,
                     module_.position(before.at).line));
}

// Reports directives that contradict each other or the kind of their function.
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
  if (a.req_cluster[0] != 0 && a.max_cluster_rank != 0) {
    report(DiagnosticKind::bad_declaration, at, previous_end_,
           "'.reqnctapercluster' and '.maxclusterrank' exclude each other");
  }
  if (a.blocks_are_clusters && (a.req_ntid[0] == 0 || a.req_cluster[0] == 0)) {
    report(DiagnosticKind::bad_declaration, at, previous_end_,
           "'.blocksareclusters' needs '.reqntid' and '.reqnctapercluster'");
  }
}

// The parameters of an entry must fit into the constant bank that holds them.
void Parser::check_parameter_space(const Function& entry, Offset at) {
  constexpr uint64_t kSmall = 4352, kLarge = 32764;
  const bool is_large = version() >= 81 && module_.target_sm >= 70;
  uint64_t size = 0;
  for (const VariableId id : entry.parameters) {
    const Variable& parameter = module_.variables[id];
    const uint64_t align = std::max<uint64_t>(parameter.align, 1);
    size = (size + align - 1) / align * align + parameter.size_bytes;
  }
  if (size > (is_large ? kLarge : kSmall)) {
    report(DiagnosticKind::bad_declaration, at, at + static_cast<Offset>(entry.name.size()),
           fmt::format("the parameters of '{}' take {} bytes, more than {}", entry.name, size,
                       is_large ? kLarge : kSmall));
  }
}

void Parser::parse_function(const Qualifiers& qualifiers, bool is_entry) {
  advance();
  Qualifiers all = qualifiers;
  while (!is_entry && is_word(".attribute")) {
    if (!parse_attribute(all)) return recover();
  }
  if (all.linkage == Linkage::common || (all.managed_or_unified & 1) != 0) {
    report(DiagnosticKind::bad_declaration, all.at, previous_end_, "functions are neither '.common' nor '.managed'");
  }
  Function now;
  now.at = all.at;
  now.is_entry = is_entry;
  now.linkage = all.linkage;
  bool readable = true;
  if (!is_entry && accept('(')) readable = parse_parameter_list(now.results, ListOf::results);
  if (!readable || !is_name()) {
    if (readable) unexpected(is_entry ? "the name of the entry" : "the name of the function");
    recover();
    if (is('{') || is('}')) advance();
    return;
  }
  now.name = here();
  const Token name = token_;
  advance();
  const ListOf of = is_entry ? ListOf::entry : ListOf::parameters;
  if (accept('(')) readable = parse_parameter_list(now.parameters, of);
  // After a broken parameter list the body can still be parsed.
  while (!readable && token_.kind != TokenKind::end && !is('{') && !is(';') && !is('}')) advance();
  const Offset directives_at = token_.at;
  while (parse_function_directive(now.attributes, of)) {
  }
  check_attributes(now, directives_at);
  if (is_entry) check_parameter_space(now, name.at);
  // ptxas accepts the declaration of a function without its ';'.
  const bool bare = !is_entry && (token_.kind == TokenKind::end || begins_declaration());
  if (is_entry && is(';') && token_.at != directives_at) unexpected("'{' after the directives of an entry");
  if (!bare && !is(';') && !is('{')) {
    if (token_.kind == TokenKind::dot_word) {
      report_here(DiagnosticKind::unknown_directive, fmt::format("'{}' is not a directive of a function", here()));
    } else {
      unexpected("'{' or ';' after the function's head");
    }
    while (token_.kind != TokenKind::end && !is('{') && !is(';') && !is('}')) advance();
  }
  now.has_body = is('{');
  if (now.has_body && now.linkage == Linkage::external) {
    report(DiagnosticKind::bad_declaration, name.at, name.end, fmt::format("'{}' is .extern and has a body", now.name));
  }

  const Symbol* before = symbols_.find(now.name);
  FunctionId id = static_cast<FunctionId>(module_.functions.size());
  if (before != nullptr && before->kind == SymbolKind::function) {
    Function& known = module_.functions[before->id];
    check_signature(known, now, name.at);
    if (now.linkage != known.linkage && now.linkage != Linkage::external &&
        (now.linkage != Linkage::internal || known.linkage == Linkage::external)) {
      report(DiagnosticKind::signature_mismatch, name.at, name.end,
             fmt::format("'{}' was declared with another linking directive in line {}", now.name,
                         module_.position(known.at).line));
    }
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
  // Before PTX 3.0 registers may belong to the module; every function gets its own declarations of them.
  if (!module_registers_.empty()) {
    open_scope();
    for (const RegisterDeclaration& r : module_registers_) declare_register(r.base, r.count, r.type, r.vector, r.at);
  }
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
  if (!module_registers_.empty()) close_scope();
  function().end = previous_end_;
  function_ = kNone;
  location_ = kNone;
  add_item(module_.items, Item::Kind::function, id, all.at);
}

}  // namespace ptxkit::ptx
