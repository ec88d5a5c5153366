// Prints a tree as PTX text in one canonical layout.
#pragma once

#include <string>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::ptx {

// Returns equivalent PTX: parsing it gives the same tree except for positions, ptxas assembles it to the same machine
// code, and printing that tree again gives the same text. Comments are dropped. Precondition: the module is free of
// diagnostics; otherwise the output is as broken as the source.
std::string print(const Module& module);

// One instruction of a function in the form of print(): "@!%p1 ld.global.u32 %r1, [%rd1];".
std::string print(const Module& module, const Function& function, const Instruction& instruction);

}  // namespace ptxkit::ptx
