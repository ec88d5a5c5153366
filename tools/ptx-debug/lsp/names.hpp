// Where each register, variable, function, label and table of a module is named. The parser has resolved the names by
// PTX's scopes, so two registers of one name in two blocks are two symbols.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::lsp {

struct Symbol {
  enum class Kind : uint8_t { reg, variable, function, label, table } kind = Kind::reg;
  ptx::FunctionId function = ptx::kNone;  // of a register, label or table
  uint32_t id = ptx::kNone;               // RegId, VariableId, FunctionId, LabelId, or index into Function::tables
  auto operator<=>(const Symbol&) const = default;
};

struct Occurrence {
  ptx::Offset at = 0, end = 0;
  Symbol symbol;
  bool is_declaration = false;
  bool is_written = false;                      // a register that the instruction writes
  ptx::InstructionId instruction = ptx::kNone;  // that names it
  uint32_t operand = ptx::kNone;                // of a register: index into the operand pool; kNone: the guard
};

// A name that a function or the module declares, and where it may be used.
struct Declared {
  std::string name;
  Symbol symbol;
  std::string what;  // ".b32 register"
  ptx::Offset begin = 0, end = 0;
};

class Names {
 public:
  explicit Names(const ptx::Module& module);

  // The name that holds `offset` or ends there; null where there is none.
  const Occurrence* at(ptx::Offset offset) const;
  std::vector<const Occurrence*> of(const Symbol& symbol) const;  // in the order of the text
  const std::vector<Occurrence>& all() const { return occurrences_; }

 private:
  void add_function(ptx::FunctionId id);
  void add_instruction(ptx::FunctionId id, ptx::InstructionId instruction);
  void add_item(ptx::FunctionId id, const ptx::Item& item);
  void add(ptx::Offset at, const Symbol& symbol, bool is_declaration);

  const ptx::Module& module_;
  std::vector<Occurrence> occurrences_;  // in the order of the text
  std::vector<uint32_t> by_symbol_;      // the same, sorted by symbol
};

struct Span {
  ptx::Offset begin = 0, end = 0;
};
// Where a symbol is declared: a register by its range, a function perhaps several times.
std::vector<Span> declarations_of(const ptx::Module& module, const Names& names, const Symbol& symbol);

// The function whose text holds `offset`; kNone outside of all bodies.
ptx::FunctionId function_at(const ptx::Module& module, ptx::Offset offset);
// The instruction whose statement holds `offset`, or ends there; kNone where there is none.
ptx::InstructionId instruction_at(const ptx::Module& module, ptx::FunctionId function, ptx::Offset offset);

// The names that may be used at `offset`. Of a range of registers those that instructions name, and the first that none
// does.
std::vector<Declared> declared_at(const ptx::Module& module, ptx::Offset offset);

}  // namespace ptxkit::lsp
