// The parser's internal state; the entry point is parse() in analyzer/ptx/diagnostic.hpp.
//
// Recursive descent in one pass with one token of look-ahead. Names are resolved while they are read; labels, which may
// be defined later, are resolved when their scope closes. A mistake becomes a diagnostic, and parsing continues with
// the next statement, so that all mistakes of a file are reported together.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/lexer.hpp"
#include "analyzer/ptx/symbols.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/ptx/validate.hpp"

namespace ptxkit::ptx {

// Limits far above any compiler's output, which keep hostile text from exhausting stack or memory.
inline constexpr unsigned kMaxNesting = 200;
inline constexpr unsigned kMaxErrors = 10000;
inline constexpr unsigned kMaxFamily = 1 << 16;  // total of variables in declarations such as `.param .b32 x<4>`

inline constexpr uint64_t kMaxVariableBytes = uint64_t{1} << 47;  // beyond every address space

// a * b, or kMaxVariableBytes + 1 if the product exceeds kMaxVariableBytes.
uint64_t bounded_product(uint64_t a, uint64_t b);

// The value of a constant expression.
struct Constant {
  enum class Kind : uint8_t { signed_int, unsigned_int, float32, float64 } kind = Kind::signed_int;
  uint64_t bits = 0;
  bool is_integer() const { return kind == Kind::signed_int || kind == Kind::unsigned_int; }
  double as_double() const;
};

// A spelling of opcode and modifiers, decoded once: a file has few distinct ones.
struct DirectiveHead {
  Instruction pattern;  // op, types, spaces, vector; the rest is empty
  std::vector<Mod> modifiers;
  FunctionId pooled_in = kNone;  // the function whose modifier_pool has them at pattern.first_modifier
  uint32_t unknown_word = 0;     // offset in the spelling of the first word that is not a modifier; 0: all are known
  Verdict verdict;               // the ISA table's verdict
};

class Parser {
 public:
  Parser(Module& module, std::vector<Diagnostic>& diagnostics);
  void run();

 private:
  // Cursor and errors (parser.cpp).
  void advance();
  bool is(char c) const {
    return token_.kind == TokenKind::punctuation && token_.first == c && token_.end == token_.at + 1;
  }
  bool is_word(std::string_view word) const { return token_.kind == TokenKind::dot_word && here() == word; }
  bool accept(char c);
  bool accept_word(std::string_view word);
  bool expect(char c, std::string_view after);
  bool is_name() const { return token_.kind == TokenKind::identifier && here() != "_" && here() != "WARP_SZ"; }
  bool begins_declaration() const;
  bool is_texmode_independent() const;
  std::string_view here() const { return lexer_.text(token_); }
  std::string found() const;
  void report(DiagnosticKind kind, Offset at, Offset end, std::string message);
  void report_here(DiagnosticKind kind, std::string message) {
    report(kind, token_.at, token_.end, std::move(message));
  }
  void unexpected(std::string_view expected);
  bool starts_line() const;
  void recover();
  uint32_t version() const { return module_.version_major * 10 + module_.version_minor; }
  void require_level(std::string_view feature, Offset at, Offset end);
  Function& function() { return module_.functions[function_]; }

  // Module level (parser.cpp).
  void check_definitions();
  void parse_header();
  void parse_version();
  void parse_target();
  void parse_address_size();
  void parse_top_level();
  void parse_alias();
  void parse_pragma(std::vector<Item>& items);
  void parse_qualified();
  void add_item(std::vector<Item>& items, Item::Kind kind, uint32_t id, Offset at, uint32_t count = 1);

  // Debugging directives (debug.cpp).
  void parse_file();
  void parse_section();
  void parse_section_data();
  bool parse_section_number(unsigned width);
  void recover_in_section();
  void parse_location();
  bool parse_loc_numbers(Location& location);
  LocationId intern(const Location& location);

  // Declarations (declarations.cpp).
  struct Qualifiers {
    Linkage linkage = Linkage::internal;
    Offset at = 0;
    uint32_t managed_or_unified = 0;
    uint64_t unified_id[2] = {0, 0};
  };
  bool parse_attribute(Qualifiers& qualifiers);
  void parse_function(const Qualifiers& qualifiers, bool is_entry);
  enum class ListOf : uint8_t { entry, parameters, results, prototype, prototype_results };
  bool parse_parameter_list(std::vector<VariableId>& list, ListOf of);
  void check_parameter(const Variable& parameter, ListOf of, const std::vector<VariableId>& before);
  void check_parameter_space(const Function& entry, Offset at);
  bool parse_function_directive(FunctionAttributes& attributes, ListOf of);
  unsigned parse_dimensions(uint32_t (&out)[3]);
  FunctionId declare_function(std::string_view name, Offset at, bool is_entry, const Qualifiers& qualifiers);
  void check_attributes(const Function& now, Offset at);
  void check_signature(const Function& before, const Function& now, Offset at);
  bool parse_variables(const Qualifiers& qualifiers, Space space, std::vector<Item>& items);
  bool parse_alignment(uint32_t& align);
  bool parse_type_prefix(Variable& variable, bool allow_pointer, Qualifiers* attributes);
  void check_type(const Variable& variable, Offset at);
  bool parse_array_suffix(Variable& variable);
  void finish_size(Variable& variable);
  void check_variable(const Variable& variable);
  void declare_variable(Variable variable);
  bool declare_family(const Variable& variable);

  // Initialisers (initializer.cpp).
  void parse_initializer(Variable& variable);
  void parse_initializer_list(Variable& variable, size_t depth);
  bool parse_initializer_element(Variable& variable);
  bool parse_initializer_symbol(Initializer& element);
  void parse_opaque_initializer(Type type, size_t depth);
  void skip_initializer();

  // Registers and names (declarations.cpp).
  void parse_registers(std::vector<Item>& items);
  void declare(std::string_view name, SymbolKind kind, uint32_t id, Offset at);
  uint32_t declare_register(std::string_view name, uint32_t count, Type type, uint8_t vector, Offset at);
  RegId use_register(uint32_t declaration, uint32_t index);

  // Bodies (body.cpp).
  void parse_body();
  void parse_statement();
  void parse_body_directive();
  void parse_label(const Token& name);
  void parse_table(const Token& name);
  void parse_instruction(Offset at, Guard guard);
  Guard parse_guard();
  DirectiveHead& head(std::string_view spelling);
  void open_scope();
  void close_scope();
  struct PendingUse {
    std::string_view name;
    Offset at = 0;
    uint32_t operand = kNone;  // in Function::operand_pool, or
    uint32_t table = kNone;    // the `target` of this table
    uint32_t target = 0;
  };
  bool resolve(const PendingUse& use, bool only_this_scope);

  // Operands (operands.cpp).
  bool parse_operands(Op op, Instruction& instruction);
  bool parse_operand(Op op, Operand& operand, unsigned nesting);
  bool parse_primary(Op op, Operand& operand, unsigned nesting);
  bool parse_address(Op op, Operand& operand, unsigned nesting);
  bool parse_group(Op op, Operand& operand, char close, OperandKind kind, unsigned nesting);
  bool parse_offset(Operand& operand);
  // Components that may follow a name: .x .y .z .w; or only .b0, .h1 and so on; or both, for an unknown name.
  enum class Components : uint8_t { none, four, any };
  Components components_of(const Operand& operand);
  void parse_component(Operand& operand, std::string_view name, Components components);
  bool parse_name(Op op, Operand& operand);
  void set_constant(Operand& operand, const Constant& constant);
  void pool_children(Operand& operand, size_t first);

  // Constant expressions (expression.cpp).
  bool parse_constant(Constant& result, unsigned nesting = 0);
  bool parse_binary(Constant& result, unsigned loosest, unsigned nesting);
  bool parse_unary(Constant& result, unsigned nesting);
  bool parse_number(Constant& result);
  bool parse_count(uint64_t& value, std::string_view what);

  Module& module_;
  std::vector<Diagnostic>& diagnostics_;
  Lexer lexer_;
  Token token_;
  Offset previous_end_ = 0;  // of the token before token_
  SymbolTable symbols_;
  std::unordered_set<uint64_t> file_numbers_;
  Validator validator_;
  FunctionId function_ = kNone;
  std::vector<RegisterDeclaration> module_registers_;  // before PTX 3.0: the module's, which every function has
  LocationId location_ = kNone;

  std::unordered_map<std::string_view, DirectiveHead> heads_;
  std::unordered_map<uint64_t, std::vector<LocationId>> locations_;  // by file, line and column
  std::vector<Operand> scratch_;                                     // operands of the instruction being read
  std::vector<PendingUse> pending_;
  std::vector<size_t> pending_starts_;  // one per scope

  // RegIds of the current function by declaration: dense slots for modest counts, a hash table otherwise.
  struct RangeIds {
    uint32_t first_slot = kNone;
  };
  std::vector<RangeIds> range_ids_;
  std::vector<RegId> range_slots_;
  std::unordered_map<uint64_t, RegId> sparse_ids_;
  uint64_t slot_budget_ = 0;
  uint64_t family_budget_ = kMaxFamily;
};

}  // namespace ptxkit::ptx
