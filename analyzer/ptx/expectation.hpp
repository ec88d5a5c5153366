// The words of a mistake in an operand: which rule speaks of it, and what was expected.
#pragma once

#include <string_view>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/isa.hpp"

namespace ptxkit::ptx {

DiagnosticKind type_kind(Op op, bool is_destination);  // of a register of another type
DiagnosticKind form_kind(Op op);                       // of a spelling that no form takes

std::string_view wanted(const OperandSpec& spec);  // "a register or a constant"

}  // namespace ptxkit::ptx
