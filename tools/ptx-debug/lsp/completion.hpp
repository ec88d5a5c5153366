// What may be written at a place: opcodes, the words that may follow one, registers, labels, variables, functions,
// directives.
#pragma once

#include "tools/ptx-debug/lsp/answers.hpp"
#include "tools/ptx-debug/lsp/document.hpp"

namespace ptxkit::lsp {

Json completion(Document& document, Place place);

}  // namespace ptxkit::lsp
