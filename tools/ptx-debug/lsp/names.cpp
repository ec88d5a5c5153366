#include "tools/ptx-debug/lsp/names.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "analyzer/analyze/place.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/lexer.hpp"

namespace ptxkit::lsp {
namespace {

using ptx::Offset;

// Calls visit(name, at, end) for every identifier in [at, end) of the text.
template <class Visit>
void for_each_identifier(const ptx::Module& module, Offset at, Offset end, const Visit& visit) {
  std::vector<ptx::Diagnostic> ignored;
  ptx::Lexer lexer(module.text, ignored);
  lexer.seek(at);
  for (ptx::Token token = lexer.next(); token.kind != ptx::TokenKind::end && token.at < end; token = lexer.next())
    if (token.kind == ptx::TokenKind::identifier) visit(lexer.text(token), token.at, token.end);
}

Offset token_end(const ptx::Module& module, Offset at) {
  std::vector<ptx::Diagnostic> ignored;
  ptx::Lexer lexer(module.text, ignored);
  lexer.seek(at);
  return lexer.next().end;
}

// A symbol that an operand names.
struct Named {
  std::string name;
  Symbol symbol;
};
void collect(const ptx::Module& module, ptx::FunctionId id, const ptx::Operand& operand, std::vector<Named>& found) {
  const ptx::Function& function = module.functions[id];
  // An operand of a text with mistakes may refer to nothing.
  const auto reg = [&] {
    if (operand.id >= function.registers.size()) return;
    found.push_back({function.registers[operand.id].name(), {Symbol::Kind::reg, id, operand.id}});
  };
  const auto variable = [&] {
    if (operand.id >= module.variables.size()) return;
    found.push_back({std::string(module.variables[operand.id].name), {Symbol::Kind::variable, ptx::kNone, operand.id}});
  };
  switch (operand.kind) {
    case ptx::OperandKind::reg:
      reg();
      break;
    case ptx::OperandKind::address:
      if (operand.base == ptx::AddressBase::reg) reg();
      if (operand.base == ptx::AddressBase::variable) variable();
      break;
    case ptx::OperandKind::symbol:
      variable();
      break;
    case ptx::OperandKind::function:
      if (operand.id >= module.functions.size()) break;
      found.push_back(
          {std::string(module.functions[operand.id].name), {Symbol::Kind::function, ptx::kNone, operand.id}});
      break;
    case ptx::OperandKind::label:
      if (operand.id >= function.labels.size()) break;
      found.push_back({std::string(function.labels[operand.id].name), {Symbol::Kind::label, id, operand.id}});
      break;
    case ptx::OperandKind::prototype:
      if (operand.id >= function.tables.size()) break;
      found.push_back({std::string(function.tables[operand.id].name), {Symbol::Kind::table, id, operand.id}});
      break;
    default:
      break;
  }
  for (const ptx::Operand& child : function.children(operand)) collect(module, id, child, found);
}

}  // namespace

Names::Names(const ptx::Module& module) : module_(module) {
  for (const ptx::Item& item : module.items) add_item(ptx::kNone, item);
  for (ptx::VariableId id = 0; id < module.variables.size(); ++id)
    add(module.variables[id].declared_at, {Symbol::Kind::variable, ptx::kNone, id}, true);
  for (ptx::FunctionId id = 0; id < module.functions.size(); ++id) add_function(id);
  std::ranges::stable_sort(occurrences_, {}, &Occurrence::at);
  // A family such as `.param .b32 x<4>` declares several variables at one place.
  const auto repeated = std::ranges::unique(occurrences_, {}, &Occurrence::at);
  occurrences_.erase(repeated.begin(), repeated.end());
  by_symbol_.resize(occurrences_.size());
  for (uint32_t i = 0; i < by_symbol_.size(); ++i) by_symbol_[i] = i;
  std::ranges::stable_sort(by_symbol_, {}, [&](uint32_t i) { return occurrences_[i].symbol; });
}

void Names::add(Offset at, const Symbol& symbol, bool is_declaration) {
  occurrences_.push_back({at, token_end(module_, at), symbol, is_declaration, false, ptx::kNone, ptx::kNone});
}

void Names::add_function(ptx::FunctionId id) {
  const ptx::Function& function = module_.functions[id];
  // The declaration of a range names none of its registers.
  for (ptx::RegId reg = 0; reg < function.registers.size(); ++reg)
    if (function.registers[reg].index == ptx::kNone)
      add(function.registers[reg].declared_at, {Symbol::Kind::reg, id, reg}, true);
  for (uint32_t label = 0; label < function.labels.size(); ++label)
    add(function.labels[label].at, {Symbol::Kind::label, id, label}, true);
  for (uint32_t table = 0; table < function.tables.size(); ++table)
    add(function.tables[table].at, {Symbol::Kind::table, id, table}, true);
  for (ptx::InstructionId i = 0; i < function.instructions.size(); ++i) add_instruction(id, i);
  for (const ptx::Item& item : function.items) add_item(id, item);
}

void Names::add_instruction(ptx::FunctionId id, ptx::InstructionId index) {
  const ptx::Function& function = module_.functions[id];
  const ptx::Instruction& instruction = function.instructions[index];
  std::vector<Named> found;
  for (const ptx::Operand& operand : function.operands(instruction)) collect(module_, id, operand, found);
  // Registers in the order of the text, with what the instruction does to each.
  std::vector<std::pair<uint32_t, bool>> registers;
  ptx::for_each_register(function, instruction, [&](uint32_t pool_index, const ptx::Operand&, bool is_written) {
    registers.emplace_back(pool_index, is_written);
  });
  const auto end = static_cast<Offset>(instruction.at + report::statement_at(module_, instruction.at).size());
  size_t next_register = 0;
  for_each_identifier(module_, instruction.at, end, [&](std::string_view name, Offset at, Offset name_end) {
    Occurrence occurrence{at, name_end, {}, false, false, index, ptx::kNone};
    if (at < instruction.opcode_at) {
      if (!instruction.guard) return;
      occurrence.symbol = {Symbol::Kind::reg, id, instruction.guard.reg};
      return occurrences_.push_back(occurrence);
    }
    const auto named = std::ranges::find(found, name, &Named::name);
    if (named == found.end()) return;
    occurrence.symbol = named->symbol;
    if (named->symbol.kind == Symbol::Kind::reg) {
      for (size_t i = next_register; i < registers.size(); ++i) {
        if (function.operand_pool[registers[i].first].id != named->symbol.id) continue;
        std::tie(occurrence.operand, occurrence.is_written) = registers[i];
        next_register = i + 1;
        break;
      }
    }
    occurrences_.push_back(occurrence);
  });
}

void Names::add_item(ptx::FunctionId id, const ptx::Item& item) {
  std::vector<Named> found;
  const auto add_functions = [&](auto... ids) {
    for (const uint32_t each : {ids...})
      if (each < module_.functions.size())
        found.push_back({std::string(module_.functions[each].name), {Symbol::Kind::function, ptx::kNone, each}});
  };
  bool is_declaration = false;
  Offset end = item.end;
  switch (item.kind) {
    case ptx::Item::Kind::function: {
      add_functions(item.id);
      is_declaration = true;
      const size_t body = module_.text.find('{', item.at);
      end = std::min<Offset>(end, body == std::string_view::npos ? end : static_cast<Offset>(body));
      break;
    }
    case ptx::Item::Kind::alias:
      add_functions(module_.aliases[item.id].alias, module_.aliases[item.id].aliasee);
      break;
    case ptx::Item::Kind::variable:
      for (uint32_t i = item.id; i < item.id + item.count && i < module_.variables.size(); ++i)
        for (const ptx::Initializer& element : module_.variables[i].initializer) {
          if (element.kind == ptx::Initializer::Kind::function) add_functions(element.id);
          if (element.kind == ptx::Initializer::Kind::variable && element.id < module_.variables.size())
            found.push_back(
                {std::string(module_.variables[element.id].name), {Symbol::Kind::variable, ptx::kNone, element.id}});
        }
      break;
    case ptx::Item::Kind::table: {
      const ptx::Function& function = module_.functions[id];
      const ptx::Table& table = function.tables[item.id];
      for (const uint32_t target : table.targets) {
        if (table.kind == ptx::Table::Kind::call_targets) add_functions(target);
        if (table.kind == ptx::Table::Kind::branch_targets && target < function.labels.size())
          found.push_back({std::string(function.labels[target].name), {Symbol::Kind::label, id, target}});
      }
      break;
    }
    default:
      return;
  }
  if (found.empty()) return;
  // A large initializer names few symbols many times.
  std::map<std::string_view, Symbol> symbols;
  for (const Named& each : found) symbols.emplace(each.name, each.symbol);
  bool is_first = true;
  for_each_identifier(module_, item.at, end, [&](std::string_view name, Offset at, Offset name_end) {
    const auto named = symbols.find(name);
    if (named == symbols.end() || (is_declaration && !is_first)) return;
    is_first = false;
    occurrences_.push_back({at, name_end, named->second, is_declaration, false, ptx::kNone, ptx::kNone});
  });
}

const Occurrence* Names::at(Offset offset) const {
  auto next = std::ranges::upper_bound(occurrences_, offset, {}, &Occurrence::at);
  if (next == occurrences_.begin()) return nullptr;
  const Occurrence& found = *std::prev(next);
  return offset <= found.end ? &found : nullptr;
}

std::vector<const Occurrence*> Names::of(const Symbol& symbol) const {
  const auto range =
      std::ranges::equal_range(by_symbol_, symbol, {}, [&](uint32_t i) { return occurrences_[i].symbol; });
  std::vector<const Occurrence*> result;
  for (const uint32_t i : range) result.push_back(&occurrences_[i]);
  return result;
}

std::vector<Span> declarations_of(const ptx::Module& module, const Names& names, const Symbol& symbol) {
  if (symbol.kind == Symbol::Kind::reg) {
    const Offset at = module.functions[symbol.function].registers[symbol.id].declared_at;
    return {{at, token_end(module, at)}};
  }
  std::vector<Span> result;
  for (const Occurrence* each : names.of(symbol))
    if (each->is_declaration) result.push_back({each->at, each->end});
  return result;
}

ptx::FunctionId function_at(const ptx::Module& module, Offset offset) {
  for (ptx::FunctionId id = 0; id < module.functions.size(); ++id) {
    const ptx::Function& function = module.functions[id];
    if (function.has_body && function.at <= offset && offset <= function.end) return id;
  }
  return ptx::kNone;
}

ptx::InstructionId instruction_at(const ptx::Module& module, ptx::FunctionId id, Offset offset) {
  if (id == ptx::kNone) return ptx::kNone;
  const std::vector<ptx::Instruction>& all = module.functions[id].instructions;
  const auto next = std::ranges::upper_bound(all, offset, {}, &ptx::Instruction::at);
  if (next == all.begin()) return ptx::kNone;
  const auto found = std::prev(next);
  if (offset > found->at + report::statement_at(module, found->at).size()) return ptx::kNone;
  return static_cast<ptx::InstructionId>(found - all.begin());
}

namespace {

class DeclaredNames {
 public:
  DeclaredNames(const ptx::Module& module, Offset offset) : module_(module), offset_(offset) {}

  std::vector<Declared> collect() {
    for (uint32_t i = 0; i < module_.variables.size(); ++i)
      if (module_.variables[i].function == ptx::kNone) add_variable(i, 0, static_cast<Offset>(module_.text.size()));
    for (uint32_t i = 0; i < module_.functions.size(); ++i)
      add(module_.functions[i].name, {Symbol::Kind::function, ptx::kNone, i},
          module_.functions[i].is_entry ? "entry" : "function", 0, static_cast<Offset>(module_.text.size()));
    if (const ptx::FunctionId id = function_at(module_, offset_); id != ptx::kNone) add_function(id);
    return std::move(result_);
  }

 private:
  void add(std::string_view name, const Symbol& symbol, std::string what, Offset begin, Offset end) {
    if (!name.empty() && begin <= offset_ && offset_ <= end)
      result_.push_back({std::string(name), symbol, std::move(what), begin, end});
  }
  void add_variable(ptx::VariableId id, Offset begin, Offset end) {
    const ptx::Variable& variable = module_.variables[id];
    add(variable.name, {Symbol::Kind::variable, ptx::kNone, id},
        fmt::format(".{} .{}", text(variable.space), text(variable.type)), begin, end);
  }

  void add_function(ptx::FunctionId id) {
    const ptx::Function& function = module_.functions[id];
    for (const ptx::VariableId each : function.results) add_variable(each, function.at, function.end);
    for (const ptx::VariableId each : function.parameters) add_variable(each, function.at, function.end);
    std::vector<std::set<uint32_t>> used(function.register_declarations.size());
    for (const ptx::Register& reg : function.registers)
      if (reg.declaration < used.size()) used[reg.declaration].insert(reg.index);
    // The end of the block that holds each item.
    std::vector<Offset> ends(function.items.size(), function.end);
    std::vector<Offset> open{function.end};
    for (size_t i = function.items.size(); i-- > 0;) {
      const ptx::Item& item = function.items[i];
      if (item.kind == ptx::Item::Kind::close_brace) open.push_back(item.at);
      ends[i] = open.back();
      if (item.kind == ptx::Item::Kind::open_brace && open.size() > 1) open.pop_back();
    }
    std::vector<Offset> begins{function.at};
    for (size_t i = 0; i < function.items.size(); ++i) {
      const ptx::Item& item = function.items[i];
      if (item.kind == ptx::Item::Kind::open_brace) begins.push_back(item.at);
      if (item.kind == ptx::Item::Kind::close_brace && begins.size() > 1) begins.pop_back();
      if (item.kind == ptx::Item::Kind::label)  // may be named before it
        add(function.labels[item.id].name, {Symbol::Kind::label, id, item.id}, "label", begins.back(), ends[i]);
      if (item.kind == ptx::Item::Kind::table)
        add(function.tables[item.id].name, {Symbol::Kind::table, id, item.id}, "table", begins.back(), ends[i]);
      for (uint32_t each = item.id; each < item.id + item.count; ++each) {
        if (item.kind == ptx::Item::Kind::variable) add_variable(each, item.at, ends[i]);
        if (item.kind == ptx::Item::Kind::registers)
          add_registers(id, function.register_declarations[each], used[each], item.at, ends[i]);
      }
    }
  }

  void add_registers(ptx::FunctionId id, const ptx::RegisterDeclaration& declaration, const std::set<uint32_t>& used,
                     Offset begin, Offset end) {
    const std::string what = fmt::format(".{} register", text(declaration.type));
    const Symbol symbol{Symbol::Kind::reg, id, ptx::kNone};
    if (declaration.count == ptx::kNone) return add(declaration.base, symbol, what, begin, end);
    uint32_t unused = 0;
    for (const uint32_t index : used) {
      add(fmt::format("{}{}", declaration.base, index), symbol, what, begin, end);
      if (index == unused) ++unused;
    }
    if (unused < declaration.count)
      add(fmt::format("{}{}", declaration.base, unused), symbol, what + ", not used yet", begin, end);
  }

  const ptx::Module& module_;
  Offset offset_;
  std::vector<Declared> result_;
};

}  // namespace

std::vector<Declared> declared_at(const ptx::Module& module, Offset offset) {
  return DeclaredNames(module, offset).collect();
}

}  // namespace ptxkit::lsp
