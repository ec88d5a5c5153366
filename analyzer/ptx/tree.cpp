// Queries on the tree that need more than a field.
#include "analyzer/ptx/tree.hpp"

#include <algorithm>

namespace ptxkit::ptx {

std::string Register::name() const {
  std::string result(base);
  if (index != kNone) result += std::to_string(index);
  return result;
}

bool Function::has(const Instruction& instruction, Mod mod) const {
  const auto all = modifiers(instruction);
  return std::find(all.begin(), all.end(), mod) != all.end();
}

Position Module::position(Offset offset) const {
  if (line_starts.empty()) return {1, 1};
  const auto after = std::upper_bound(line_starts.begin(), line_starts.end(), offset);
  const auto index = static_cast<uint32_t>(after - line_starts.begin()) - 1;
  return {index + 1, offset - line_starts[index] + 1};
}

std::string_view Module::line(uint32_t line) const {
  if (line == 0 || line > line_starts.size()) return {};
  const size_t start = line_starts[line - 1];
  size_t end = line < line_starts.size() ? line_starts[line] - 1 : text.size();
  if (end > start && text[end - 1] == '\r') --end;
  return text.substr(start, end - start);
}

const SourceFile* Module::file(uint32_t number) const {
  const auto found = std::find_if(files.begin(), files.end(), [&](const SourceFile& f) { return f.number == number; });
  return found != files.end() ? &*found : nullptr;
}

CallParts call_parts(const Function& function, const Instruction& call) {
  CallParts parts;
  for (const Operand& operand : function.operands(call)) {
    if (operand.kind == OperandKind::parameters) {
      (parts.target == nullptr ? parts.results : parts.arguments) = &operand;
    } else if (parts.target == nullptr) {
      parts.target = &operand;
    } else {
      parts.prototype = &operand;
    }
  }
  return parts;
}

Shape shape(const Instruction& instruction) {
  std::string_view rest = instruction.spelling;
  while (!rest.empty()) {
    const size_t dot = rest.find('.');
    const Word word = find_word(rest.substr(0, dot));
    if (word.kind == Word::Kind::modifier && static_cast<Mod>(word.id) == Mod::shape) return word.shape;
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  }
  return {};
}

}  // namespace ptxkit::ptx
