// What may be taken out of a module, as edits of its text: each unit is one thing that can go, or become simpler, apart
// from the others. Whether what is left is still PTX is for the parser to say.
#pragma once

#include <string>
#include <vector>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::reduce {

// [begin, end) of the text becomes `replacement`.
struct Edit {
  size_t begin = 0, end = 0;
  std::string replacement;
};
using Unit = std::vector<Edit>;  // edits that go together, such as the two braces of a scope

// Functions, variables, files, sections, aliases of the module.
std::vector<Unit> module_units(const ptx::Module& module);
// Instructions, labels, variables, tables, pragmas and `.loc` of every body.
std::vector<Unit> statement_units(const ptx::Module& module);
// What surrounds statements: scopes, performance directives, parameters, registers that nothing names, initialisers.
std::vector<Unit> frame_units(const ptx::Module& module);
// Guards left out, displacements left out, operands that become 0.
std::vector<Unit> operand_units(const ptx::Module& module);

// The text with the edits of every unit whose `chosen` is true made, and without blank lines. Where edits overlap, the
// one that begins first wins and takes the others' spans with it.
std::string edited(std::string_view text, const std::vector<Unit>& units, const std::vector<bool>& chosen);

}  // namespace ptxkit::reduce
