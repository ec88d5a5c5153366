// The parts of a module that can be removed, as edits of its text. Each unit can be removed or simplified independently
// of the others. The parser decides whether the rest is still PTX.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::reduce {

// Replaces [begin, end) of the text by `replacement`.
struct Edit {
  size_t begin = 0, end = 0;
  std::string replacement;
};
using Unit = std::vector<Edit>;  // edits that belong together, such as the two braces of a scope

// Functions, variables, files, sections and aliases of the module.
std::vector<Unit> module_units(const ptx::Module& module);
// Instructions, labels, variables, tables, pragmas and `.loc` of all bodies.
std::vector<Unit> statement_units(const ptx::Module& module);
// The frame around statements: scopes, performance directives, parameters, unused registers, initialisers.
std::vector<Unit> frame_units(const ptx::Module& module);
// Removes guards and displacements, and replaces operands by 0.
std::vector<Unit> operand_units(const ptx::Module& module);

// Applies the edits of all units whose `chosen` is true, and removes blank lines. Of overlapping edits the first one
// wins and also removes the spans of the others.
std::string edited(std::string_view text, const std::vector<Unit>& units, const std::vector<bool>& chosen);

}  // namespace ptxkit::reduce
