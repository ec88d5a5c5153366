#include "tools/ptx-debug/lsp/hover.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analyzer/report/rule_page.hpp"
#include "analyzer/rules/table.hpp"
#include "support/plural.hpp"
#include "tools/ptx-debug/lsp/diagnostics.hpp"
#include "tools/ptx-debug/lsp/isa_text.hpp"

namespace ptxkit::lsp {
namespace {

constexpr size_t kMostPlaces = 8, kMostSignatureBytes = 2000;

std::string lines_text(const Document& document, const std::vector<const Occurrence*>& found) {
  std::string text;
  for (size_t i = 0; i < found.size() && i < kMostPlaces; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", document.places().line_of(found[i]->at) + 1);
  return fmt::format("line{} {}{}", found.size() == 1 ? "" : "s", text, found.size() > kMostPlaces ? ", …" : "");
}

std::string register_text(Document& document, const Occurrence& occurrence) {
  const ptx::Register& reg = document.module().functions[occurrence.symbol.function].registers[occurrence.symbol.id];
  const std::string vector = reg.vector > 1 ? fmt::format(".v{} ", reg.vector) : "";
  std::string text = fmt::format("```ptx\n.reg {}.{} {}\n```\n\n", vector, ptx::text(reg.type), reg.name());
  std::vector<const Occurrence*> writes;
  size_t read_count = 0;
  for (const Occurrence* each : document.names().of(occurrence.symbol)) {
    if (each->is_written) writes.push_back(each);
    read_count += !each->is_written && !each->is_declaration;
  }
  text += writes.empty() ? "never written" : "written at " + lines_text(document, writes);
  text += fmt::format(", read at {}", plural(read_count, "place"));
  const std::string value = document.values().at(occurrence);
  return value.empty() ? text : text + fmt::format("\n\n{}: {}", occurrence.is_written ? "becomes" : "is", value);
}

std::string variable_text(const ptx::Module& module, ptx::VariableId id) {
  const ptx::Variable& variable = module.variables[id];
  std::string text = fmt::format("```ptx\n.{} ", ptx::text(variable.space));
  if (variable.align != 0) text += fmt::format(".align {} ", variable.align);
  if (variable.vector > 1) text += fmt::format(".v{} ", variable.vector);
  text += fmt::format(".{} {}", ptx::text(variable.type), variable.name);
  for (const uint64_t each : variable.dimensions) text += each == 0 ? "[]" : fmt::format("[{}]", each);
  text += "\n```\n\n";
  return text + (variable.is_unsized ? "size given at launch" : plural(variable.size_bytes, "byte"));
}

// The text of a function up to its body.
std::string function_text(const ptx::Module& module, ptx::FunctionId id) {
  const ptx::Function& function = module.functions[id];
  std::string_view text = module.text.substr(function.at, function.end - function.at);
  text = text.substr(0, text.find_first_of("{;"));
  while (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != text.npos) text.remove_suffix(1);
  const std::string signature(text.substr(0, kMostSignatureBytes));
  return fmt::format("```ptx\n{}\n```\n\n{}", signature, plural(function.instructions.size(), "instruction"));
}

std::string symbol_text(Document& document, const Occurrence& occurrence) {
  const ptx::Module& module = document.module();
  const Symbol& symbol = occurrence.symbol;
  switch (symbol.kind) {
    case Symbol::Kind::reg:
      return register_text(document, occurrence);
    case Symbol::Kind::variable:
      return variable_text(module, symbol.id);
    case Symbol::Kind::function:
      return function_text(module, symbol.id);
    case Symbol::Kind::label:
    case Symbol::Kind::table:
      break;
  }
  std::vector<const Occurrence*> uses = document.names().of(symbol);
  std::erase_if(uses, [](const Occurrence* each) { return each->is_declaration; });
  const std::string_view what = symbol.kind == Symbol::Kind::label ? "label" : "table";
  return fmt::format("{}, {}", what, uses.empty() ? "not named" : "named at " + lines_text(document, uses));
}

// A rule's page without its heading, which says what the line above it says.
std::string page_text(std::string_view id) {
  std::string_view page = report::rule_page(id);
  if (page.starts_with("# ")) page.remove_prefix(std::min(page.size(), page.find('\n') + 1));
  while (page.starts_with('\n')) page.remove_prefix(1);
  return std::string(page);
}

// Characters that Markdown takes for marks are escaped, and each line is a line.
std::string plain_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\`*_<[").find(c) != std::string_view::npos) out += '\\';
    if (c == '\n') out += "  ";
    out += c;
  }
  return out;
}

std::string trouble_text(const Trouble& trouble) {
  const rules::RuleInfo* const rule = rules::find_rule(trouble.rule);
  return fmt::format("**{} {}**: {}\n\n{}", trouble.rule, rule == nullptr ? "" : rule->name,
                     plain_text(trouble.message), page_text(trouble.rule));
}

}  // namespace

Json hover(Document& document, Place place) {
  const auto offset = static_cast<ptx::Offset>(document.places().offset(place));
  const ptx::Module& module = document.module();
  std::vector<std::string> parts;
  Span span{offset, offset};
  const ptx::FunctionId function = function_at(module, offset);
  const ptx::InstructionId index = instruction_at(module, function, offset);
  const Occurrence* const name = document.names().at(offset);
  if (name != nullptr) {
    parts.push_back(symbol_text(document, *name));
    span = {name->at, name->end};
  } else if (index != ptx::kNone) {
    const ptx::Instruction& instruction = module.functions[function].instructions[index];
    const auto opcode_end = static_cast<ptx::Offset>(instruction.opcode_at + instruction.spelling.size());
    if (offset >= instruction.opcode_at && offset <= opcode_end) {
      parts.push_back(opcode_text(instruction, offset));
      span = {instruction.opcode_at, opcode_end};
    }
  }
  if (parts.empty()) {
    const std::string_view text = document.text();
    constexpr std::string_view kInName = "abcdefghijklmnopqrstuvwxyz0123456789_";
    size_t begin = std::min<size_t>(offset, text.size()), end = begin;
    while (begin > 0 && kInName.find(text[begin - 1]) != text.npos) --begin;
    while (end < text.size() && kInName.find(text[end]) != text.npos) ++end;
    if (begin > 0 && text[begin - 1] == '%') --begin;
    const ptx::SpecialRegister special = ptx::find_special(text.substr(begin, end - begin));
    if (special != ptx::SpecialRegister::none) {
      parts.push_back(special_text(special));
      span = {static_cast<ptx::Offset>(begin), static_cast<ptx::Offset>(end)};
    }
  }
  if (document.analysis() != nullptr) {
    for (const Trouble& trouble : troubles_of(*document.analysis())) {
      if (offset < trouble.begin || offset > trouble.end) continue;
      if (parts.empty()) span = {trouble.begin, trouble.end};
      parts.push_back(trouble_text(trouble));
    }
  }
  if (parts.empty()) return nullptr;
  return {{"contents", {{"kind", "markdown"}, {"value", fmt::format("{}", fmt::join(parts, "\n\n---\n\n"))}}},
          {"range", range_json(document.places(), span.begin, span.end)}};
}

}  // namespace ptxkit::lsp
