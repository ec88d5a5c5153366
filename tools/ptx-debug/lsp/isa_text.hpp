// Rows of the ISA table as Markdown.
#pragma once

#include <string>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::lsp {

// About the opcode of an instruction, or, where `offset` is in one of its further words, about that word and then the
// opcode.
std::string opcode_text(const ptx::Instruction& instruction, ptx::Offset offset);

std::string special_text(ptx::SpecialRegister special);

}  // namespace ptxkit::lsp
