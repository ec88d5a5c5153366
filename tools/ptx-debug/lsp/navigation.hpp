// Definitions, references and the outline of a document.
#pragma once

#include "tools/ptx-debug/lsp/answers.hpp"
#include "tools/ptx-debug/lsp/document.hpp"

namespace ptxkit::lsp {

Json definition(Document& document, Place place);
Json references(Document& document, Place place, bool with_declaration);
// Functions, with their labels and variables, and the module's variables.
Json outline(Document& document);

}  // namespace ptxkit::lsp
