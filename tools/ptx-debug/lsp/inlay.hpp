// Hints at the ends of statements that access memory: where the address lies and how it is aligned.
#pragma once

#include "tools/ptx-debug/lsp/answers.hpp"
#include "tools/ptx-debug/lsp/document.hpp"

namespace ptxkit::lsp {

Json inlay_hints(Document& document, const Range& range);

}  // namespace ptxkit::lsp
