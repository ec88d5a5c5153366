// Which rules a mistake that the front end found counts for.
#pragma once

#include <string_view>

#include "analyzer/ptx/diagnostic.hpp"

namespace ptxkit::rules {

// The rule that the diagnostic's kind belongs to, and beside it the rule that speaks of the instruction at hand: a
// matrix shape that does not exist is no form of the ISA table (F007) and no legal shape (F088).
bool counts_for(std::string_view rule, const ptx::Module& module, const ptx::Diagnostic& diagnostic);

}  // namespace ptxkit::rules
