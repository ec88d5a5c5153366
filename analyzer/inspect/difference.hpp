// Semantic differences between two PTX modules.
#pragma once

#include <string>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::inspect {

struct Difference {
  bool same = true;
  std::string text;  // empty where they are the same
};

// Compares the canonical texts function by function. Arbitrary names are ignored: names of registers, labels,
// parameters, variables of a function, internal symbols, and generated parts of linked symbols (hashes, numbers in
// names with `$`), as long as each name of one module always corresponds to the same name of the other. `.loc`,
// `.file`, debug sections, comments, layout and the number of declared registers are ignored too; the types of
// registers are not. A name that nested scopes use for two things is treated as one.
//
// The text of the result lists what the machine would do differently (instructions, registers, memory, the kinds of
// instruction whose number changed), then the changed lines with context, numbered as in the two files. Precondition:
// both modules are free of diagnostics.
Difference difference(const ptx::Module& before, const ptx::Module& after);

}  // namespace ptxkit::inspect
