#include "analyzer/reduce/edits.hpp"

#include <algorithm>
#include <string_view>

namespace ptxkit::reduce {
namespace {

using ptx::Function;
using ptx::Instruction;
using ptx::Item;
using ptx::Module;

constexpr std::string_view kBlanks = " \t\r\n";

// One past the ';' that ends the statement at `at`. Inside an instruction a ';' can occur only in a comment, and
// print() leaves no comments.
size_t statement_end(std::string_view text, size_t at) { return std::min(text.find(';', at), text.size() - 1) + 1; }

Unit removal(size_t begin, size_t end) { return {{begin, end, ""}}; }

// Pairs of matching braces of a body; the first pair encloses the body.
std::vector<std::pair<const Item*, const Item*>> brace_pairs(const Function& function) {
  std::vector<std::pair<const Item*, const Item*>> pairs;
  std::vector<size_t> open;
  for (const Item& item : function.items) {
    if (item.kind == Item::Kind::open_brace) {
      open.push_back(pairs.size());
      pairs.emplace_back(&item, nullptr);
    } else if (item.kind == Item::Kind::close_brace && !open.empty()) {
      pairs[open.back()].second = &item;
      open.pop_back();
    }
  }
  return pairs;
}

// `.maxntid 32, 1, 1` and other directives between the parameters and the body.
void add_directives(std::string_view text, size_t begin, size_t end, std::vector<Unit>& units) {
  size_t start = std::string_view::npos;
  for (size_t i = begin; i < end; ++i) {
    if (text[i] != '.' || kBlanks.find(text[i - 1]) == std::string_view::npos) continue;
    if (start != std::string_view::npos) units.push_back(removal(start, i));
    start = i;
  }
  if (start != std::string_view::npos) units.push_back(removal(start, end));
}

// Each parameter together with the comma before it; the first one with the comma after it.
void add_parameters(const Module& module, const std::vector<ptx::VariableId>& list, std::vector<Unit>& units) {
  for (size_t i = 0; i < list.size(); ++i) {
    const size_t name = module.variables[list[i]].declared_at;
    const size_t begin = module.text.find_last_of(i == 0 ? "(" : ",", name);
    const size_t end = module.text.find_first_of(",)", name);
    if (begin == std::string_view::npos || end == std::string_view::npos) continue;
    if (i == 0) {
      units.push_back(removal(begin + 1, end + (module.text[end] == ',' ? 1 : 0)));
    } else {
      units.push_back(removal(begin, end));
    }
  }
}

// Shortens `.reg` statements: drops names that no instruction uses, and cuts ranges to the highest index in use.
void add_registers(const Function& function, std::vector<Unit>& units) {
  std::vector<uint32_t> needed(function.register_declarations.size(), 0);  // range: its length; name: 1; unused: 0
  for (const ptx::Register& reg : function.registers) {
    if (reg.declaration == ptx::kNone) continue;
    uint32_t& count = needed[reg.declaration];
    count = std::max(count, reg.index == ptx::kNone ? 1 : reg.index + 1);
  }
  for (const Item& item : function.items) {
    if (item.kind != Item::Kind::registers || item.count == 0) continue;
    const size_t first_name = function.register_declarations[item.id].at;
    std::string names;
    bool changed = false;
    for (uint32_t id = item.id; id < item.id + item.count; ++id) {
      const ptx::RegisterDeclaration& declaration = function.register_declarations[id];
      const bool is_range = declaration.count != ptx::kNone;
      changed = changed || needed[id] == 0 || (is_range && needed[id] < declaration.count);
      if (needed[id] == 0) continue;
      names += (names.empty() ? "" : ", ") + std::string(declaration.base);
      if (is_range) names += "<" + std::to_string(needed[id]) + ">";
    }
    if (!changed) continue;
    if (names.empty()) {
      units.push_back(removal(item.at, item.end));
    } else {
      units.push_back({{first_name, item.end, names + ";"}});
    }
  }
}

void add_initializers(const Module& module, const std::vector<Item>& items, std::vector<Unit>& units) {
  for (const Item& item : items) {
    if (item.kind != Item::Kind::variable) continue;
    const size_t equals = module.text.find('=', item.at);
    if (equals < item.end) units.push_back({{equals, item.end, ";"}});
  }
}

// Source operands of one instruction. A `0` in place of a destination is rejected by the parser.
void add_operands(std::string_view text, size_t begin, size_t end, std::vector<Unit>& units) {
  const auto add = [&](size_t from, size_t to) {
    while (from < to && kBlanks.find(text[from]) != std::string_view::npos) ++from;
    while (from < to && kBlanks.find(text[to - 1]) != std::string_view::npos) --to;
    const std::string_view operand = text.substr(from, to - from);
    if (operand.empty() || operand == "0") return;
    if (operand.front() != '[') {
      units.push_back({{from, to, "0"}});
    } else if (const size_t plus = operand.find('+'); plus != std::string_view::npos) {
      units.push_back(removal(from + plus, from + operand.find_first_of(",]", plus)));
    }
  };
  size_t start = begin;
  int depth = 0;
  for (size_t i = begin; i < end; ++i) {
    const char c = text[i];
    depth += (c == '[' || c == '{' || c == '(') - (c == ']' || c == '}' || c == ')');
    if (c != ',' || depth != 0) continue;
    add(start, i);
    start = i + 1;
  }
  add(start, end);
}

}  // namespace

std::vector<Unit> module_units(const Module& module) {
  std::vector<Unit> units;
  for (const Item& item : module.items) {
    if (item.kind != Item::Kind::header) units.push_back(removal(item.at, item.end));
  }
  return units;
}

std::vector<Unit> statement_units(const Module& module) {
  std::vector<Unit> units;
  for (const Function& function : module.functions) {
    for (const Item& item : function.items) {
      switch (item.kind) {
        case Item::Kind::instruction:
          for (uint32_t i = 0; i < item.count; ++i) {
            const size_t at = function.instructions[item.id + i].at;
            units.push_back(removal(at, statement_end(module.text, at)));
          }
          break;
        case Item::Kind::open_brace:
        case Item::Kind::close_brace:
        case Item::Kind::registers:
          break;
        default:
          units.push_back(removal(item.at, item.end));
          break;
      }
    }
  }
  return units;
}

std::vector<Unit> frame_units(const Module& module) {
  std::vector<Unit> units;
  add_initializers(module, module.items, units);
  for (const Function& function : module.functions) {
    if (!function.has_body) continue;
    const auto pairs = brace_pairs(function);
    for (size_t i = 1; i < pairs.size(); ++i) {
      const auto& [open, close] = pairs[i];
      if (close != nullptr) units.push_back({{open->at, open->end, ""}, {close->at, close->end, ""}});
    }
    if (!pairs.empty()) {
      const size_t body = pairs.front().first->at;
      const size_t parameters_end = module.text.rfind(')', body);
      const bool has_list = parameters_end != std::string_view::npos && parameters_end > function.at;
      if (has_list) add_directives(module.text, parameters_end + 1, body, units);
    }
    add_parameters(module, function.parameters, units);
    add_registers(function, units);
    add_initializers(module, function.items, units);
  }
  return units;
}

std::vector<Unit> operand_units(const Module& module) {
  std::vector<Unit> units;
  for (const Function& function : module.functions) {
    for (const Instruction& instruction : function.instructions) {
      if (instruction.guard) units.push_back(removal(instruction.at, instruction.opcode_at));
      add_operands(module.text, instruction.opcode_at + instruction.spelling.size(),
                   statement_end(module.text, instruction.opcode_at) - 1, units);
    }
  }
  return units;
}

std::string edited(std::string_view text, const std::vector<Unit>& units, const std::vector<bool>& chosen) {
  std::vector<const Edit*> edits;
  for (size_t i = 0; i < units.size(); ++i) {
    if (!chosen[i]) continue;
    for (const Edit& edit : units[i]) edits.push_back(&edit);
  }
  std::ranges::sort(
      edits, [](const Edit* a, const Edit* b) { return a->begin != b->begin ? a->begin < b->begin : a->end > b->end; });
  std::string whole;
  size_t at = 0;
  for (const Edit* edit : edits) {
    if (edit->begin >= at) {
      whole += text.substr(at, edit->begin - at);
      whole += edit->replacement;
    }
    at = std::max(at, edit->end);
  }
  whole += text.substr(at);

  std::string lines;
  for (size_t begin = 0; begin < whole.size();) {
    const size_t end = std::min(whole.find('\n', begin), whole.size());
    const std::string_view line = std::string_view(whole).substr(begin, end - begin);
    if (line.find_first_not_of(kBlanks) != std::string_view::npos) lines.append(line) += '\n';
    begin = end + 1;
  }
  return lines;
}

}  // namespace ptxkit::reduce
