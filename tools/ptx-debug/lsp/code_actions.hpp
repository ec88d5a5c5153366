// Quick fixes: the comment that accepts a finding. No finding states its remedy as an edit.
#pragma once

#include "tools/ptx-debug/lsp/answers.hpp"
#include "tools/ptx-debug/lsp/document.hpp"

namespace ptxkit::lsp {

Json code_actions(Document& document, const Range& range);

}  // namespace ptxkit::lsp
