// What two PTX modules do differently.
#pragma once

#include <string>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::inspect {

struct Difference {
  bool same = true;
  std::string text;  // empty where they are the same
};

// Compares the canonical texts function by function. Names that only tell things apart do not count: registers, labels,
// parameters, variables of a function, internal symbols, and the generated parts of linked ones (hashes, numbers behind
// `$`) may be called anything, as long as one name of the one module always stands for one name of the other. `.loc`,
// `.file`, debug sections, comments, layout, and how many registers are declared do not count either; the types of
// registers do. A name that nested scopes use for two things is taken for one.
//
// The text: what the machine would do differently (instructions, registers, memory, the kinds of instruction whose
// number changed), then the changed lines with their neighbours, numbered as in the two files. Both modules must be
// free of diagnostics.
Difference difference(const ptx::Module& before, const ptx::Module& after);

}  // namespace ptxkit::inspect
