#include "analyzer/ptx/expectation.hpp"

namespace ptxkit::ptx {

namespace {

// Some opcodes have a rule of their own for all their mistakes; the others get `otherwise`.
DiagnosticKind kind_of_opcode(Op op, DiagnosticKind otherwise) {
  switch (op) {
    case Op::setp:
    case Op::set:
    case Op::selp:
    case Op::slct:
      return DiagnosticKind::bad_comparison;
    case Op::cvt:
      return DiagnosticKind::bad_conversion;
    case Op::atom:
    case Op::red:
    case Op::mbarrier:
      return DiagnosticKind::bad_atomic;
    default:
      return otherwise;
  }
}

}  // namespace

DiagnosticKind type_kind(Op op, bool is_destination) {
  switch (op) {
    case Op::ld:
    case Op::ldu:
    case Op::mov:
      return is_destination || op != Op::mov ? DiagnosticKind::load_register : DiagnosticKind::operand_type;
    case Op::st:
      return DiagnosticKind::store_register;
    default:
      return kind_of_opcode(op, DiagnosticKind::operand_type);
  }
}

DiagnosticKind form_kind(Op op) { return kind_of_opcode(op, DiagnosticKind::unknown_form); }

std::string_view wanted(const OperandSpec& spec) {
  switch (spec.role) {
    case Role::destination:
      return "a register";
    case Role::source:
      return "a register";
    case Role::constant_or_source:
      return "a register or a constant";
    case Role::special:
      return "a special register with its components";
    case Role::special_or_source:
      return "a register, a constant or a special register";
    case Role::mov_source:
      return "a register, a constant or an address";
    case Role::integer:
      return "an integer constant";
    case Role::predicate_or_constant:
      return "a predicate";
    case Role::predicate:
      return "a predicate register";
    case Role::predicate_destination:
      return "a predicate register";
    case Role::address:
      return "an address in brackets";
    case Role::tensor_memory:
      return "a tensor memory address in brackets";
    case Role::variable_or_register:
      return "a register or a variable";
    case Role::generic_address:
      return "a register that holds an address";
    case Role::label:
      return "a label";
    case Role::table:
      return "a branch table";
    case Role::call:
      return "a function";
    case Role::sink:
      return "'_'";
    case Role::vector:
      return "a list in braces";
    case Role::pair:
      return "a pair joined by '|'";
    case Role::address_with_more:
      return "an address in brackets";
    case Role::opaque:
      return "a texture or surface in brackets";
  }
  return "an operand";
}

}  // namespace ptxkit::ptx
