#include "analyzer/rules/diagnostics.hpp"

#include <algorithm>

namespace ptxkit::rules {

namespace {

// The opcode of the statement that a diagnostic points into: its text from the last ';', ':' or line end on.
std::string_view opcode_at(const ptx::Module& module, ptx::Offset at) {
  const std::string_view text = module.text;
  if (at >= text.size()) return {};
  size_t begin = at;
  while (begin > 0 && text[begin - 1] != ';' && text[begin - 1] != '\n') --begin;
  std::string_view statement = text.substr(begin, text.find_first_of(";\n", at) - begin);
  auto skip_blanks = [&] {
    statement.remove_prefix(std::min(statement.size(), statement.find_first_not_of(" \t\r{}")));
  };
  skip_blanks();
  if (statement.starts_with('@')) {
    statement.remove_prefix(std::min(statement.size(), statement.find_first_of(" \t")));
    skip_blanks();
  }
  return statement.substr(0, statement.find_first_of(" \t;"));
}

bool is_one_of(std::string_view opcode, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words)
    if (opcode.starts_with(word) && (opcode.size() == word.size() || opcode[word.size()] == '.')) return true;
  return false;
}

}  // namespace

bool counts_for(std::string_view rule, const ptx::Module& module, const ptx::Diagnostic& diagnostic) {
  const std::string_view own = ptx::rule(diagnostic.kind);
  if (own == rule) return true;
  // A name that is not declared, or a byte astray, says nothing about the instruction.
  if (own != "F007" && own != "F010" && own != "F013" && own != "F018" && own != "F020" && own != "F030") return false;
  const std::string_view opcode = opcode_at(module, diagnostic.at);
  if (rule == "F027") return is_one_of(opcode, {"tex", "tld4", "txq"});
  if (rule == "F028") return is_one_of(opcode, {"suld", "sust", "sured", "suq"});
  if (rule == "F049") return is_one_of(opcode, {"bar", "barrier"}) && own == "F020";
  if (rule == "F087")
    return is_one_of(opcode, {"shfl", "vote"}) && opcode.find(".sync") == opcode.npos && own == "F010";
  if (rule == "F088") return is_one_of(opcode, {"mma", "wmma", "wgmma", "ldmatrix", "stmatrix", "movmatrix"});
  if (rule == "F089") return is_one_of(opcode, {"cp.async"});
  return false;
}

}  // namespace ptxkit::rules
