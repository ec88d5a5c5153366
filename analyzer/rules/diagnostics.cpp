#include "analyzer/rules/diagnostics.hpp"

#include <algorithm>

#include "analyzer/ptx/facts.hpp"

namespace ptxkit::rules {

using ptx::Op;

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

}  // namespace

bool counts_for(std::string_view rule, const ptx::Module& module, const ptx::Diagnostic& diagnostic) {
  const std::string_view own = ptx::rule(diagnostic.kind);
  if (own == rule) return true;
  // A name that is not declared, or a byte astray, says nothing about the instruction.
  if (own != "F007" && own != "F010" && own != "F013" && own != "F018" && own != "F020" && own != "F030") return false;
  const ptx::Opcode opcode = ptx::read_opcode(opcode_at(module, diagnostic.at));
  const auto is_one_of = [&](std::initializer_list<Op> all) { return std::ranges::find(all, opcode.op) != all.end(); };
  if (rule == "F027") return is_one_of({Op::tex, Op::tld4, Op::txq});
  if (rule == "F028") return is_one_of({Op::suld, Op::sust, Op::sured, Op::suq});
  if (rule == "F049") return is_one_of({Op::bar, Op::barrier}) && own == "F020";
  if (rule == "F087") return is_one_of({Op::shfl, Op::vote}) && !ptx::facts_of(opcode).is_synchronous && own == "F010";
  if (rule == "F088") return is_one_of({Op::mma, Op::wmma, Op::wgmma, Op::ldmatrix, Op::stmatrix, Op::movmatrix});
  if (rule == "F089")
    return opcode.op == Op::cp && ptx::facts_of(opcode).asynchronous.step != ptx::Asynchronous::Step::none;
  return false;
}

}  // namespace ptxkit::rules
