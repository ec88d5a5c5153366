// A tree back to PTX text, in one canonical layout.
#pragma once

#include <string>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::ptx {

// PTX that means what the module means: parsing it gives the same tree but for positions, ptxas makes the same machine
// code of it, and printing that tree again gives the same text. Comments are not kept. The module must be free of
// diagnostics; of another one the text is as broken as its source.
std::string print(const Module& module);

// One instruction of a function, as print() writes it: "@!%p1 ld.global.u32 %r1, [%rd1];".
std::string print(const Module& module, const Function& function, const Instruction& instruction);

}  // namespace ptxkit::ptx
