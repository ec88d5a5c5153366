// Maps mistakes that the front end found to the rules that they count for.
#pragma once

#include <string_view>

#include "analyzer/ptx/diagnostic.hpp"

namespace ptxkit::rules {

// Whether the diagnostic counts for the rule: the rule of the diagnostic's kind, or a second rule about the
// instruction. A matrix shape that does not exist matches no form of the ISA table (F007) and is no legal shape (F088).
bool counts_for(std::string_view rule, const ptx::Module& module, const ptx::Diagnostic& diagnostic);

}  // namespace ptxkit::rules
