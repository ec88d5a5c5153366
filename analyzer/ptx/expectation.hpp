// The wording of operand mistakes: the kind of diagnostic, and the expected operand.
#pragma once

#include <string_view>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/isa.hpp"

namespace ptxkit::ptx {

DiagnosticKind type_kind(Op op, bool is_destination);  // for a register of the wrong type
DiagnosticKind form_kind(Op op);                       // for a spelling that matches no form

std::string_view wanted(const OperandSpec& spec);  // "a register or a constant"

}  // namespace ptxkit::ptx
