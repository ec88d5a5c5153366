// What is known about the thing under the cursor, as Markdown: a row of the ISA table, a register with its values, a
// declaration, and the findings there with the pages of their rules.
#pragma once

#include "tools/ptx-debug/lsp/answers.hpp"
#include "tools/ptx-debug/lsp/document.hpp"

namespace ptxkit::lsp {

Json hover(Document& document, Place place);  // null where nothing is known

}  // namespace ptxkit::lsp
