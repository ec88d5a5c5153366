// What an operand may be, by its role; which types and parts of registers fit is in agreement.hpp.
#include "analyzer/ptx/validate.hpp"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>

#include "analyzer/ptx/agreement.hpp"
#include "analyzer/ptx/expectation.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/word_order.hpp"

namespace ptxkit::ptx {

namespace {

bool is_predicate(Role role) {
  return role == Role::predicate || role == Role::predicate_or_constant || role == Role::predicate_destination;
}

bool is_one_register(Role role) {
  return role == Role::destination || role == Role::predicate_destination || role == Role::source ||
         role == Role::constant_or_source;
}

FormContext context_of(const Instruction& pattern, const std::vector<OpcodeWord>& words) {
  return {words, {pattern.types, pattern.type_count}, pattern.space, pattern.second_space, pattern.vector};
}

bool needs_wide_address(Space space) { return space == Space::generic || space == Space::global; }

}  // namespace

Verdict Validator::judge(const Instruction& pattern, std::string_view spelling, const std::vector<OpcodeWord>& words) {
  Verdict verdict;
  const auto forms = forms_of(pattern.op);
  const auto first = static_cast<uint32_t>(forms.empty() ? 0 : forms.data() - all_forms().data());
  const FormContext context = context_of(pattern, words);
  const Form* too_new = nullptr;
  const Form* too_old = nullptr;
  const Form* elsewhere = nullptr;
  ModifierMatch nearest;
  unsigned nearest_distance = ~0u;
  for (uint32_t i = 0; i < forms.size(); ++i) {
    const Form& form = forms[i];
    const ModifierMatch match = match_modifiers(form, words);
    if (!match.fits()) {
      const unsigned distance = match.unclaimed_count + match.missing_count;
      if (distance < nearest_distance) {
        nearest_distance = distance;
        nearest = match;
      }
      continue;
    }
    if (version() > form.last_version) {
      too_old = &form;
      continue;
    }
    if (version() != 0 && version() < form.version) {
      if (too_new == nullptr || form.version < too_new->version) too_new = &form;
      continue;
    }
    if (module_.target_sm != 0 && !runs_on(form.targets, {module_.target_sm, module_.target_suffix})) {
      if (elsewhere == nullptr) elsewhere = &form;
      continue;
    }
    Candidate candidate;
    candidate.form = first + i;
    candidate.first_spec = static_cast<uint32_t>(compile_operands(form, context, specs_));
    candidate.spec_count = static_cast<uint32_t>(specs_.size()) - candidate.first_spec;
    verdict.candidates.push_back(candidate);
  }
  if (!verdict.candidates.empty()) {
    if (const auto misplaced = misplaced_word(pattern.op, words)) {
      verdict.kind = form_kind(pattern.op);
      verdict.message =
          fmt::format("'{}' has '.{}' where '.{}' is expected", spelling, misplaced->found, misplaced->expected);
      verdict.candidates.clear();
      return verdict;
    }
    if (pattern.op == Op::cvta && bit_width(pattern.type()) == 32 && module_.address_size == 64) {
      verdict.kind = DiagnosticKind::address_register;
      verdict.message = fmt::format("'{}' converts addresses of 32 bits, the file's have 64", spelling);
      verdict.candidates.clear();
      return verdict;
    }
    for (const WordLevel& level : word_levels()) {
      if (!applies(level, pattern.op, words)) continue;
      std::string named(level.words);
      std::replace(named.begin(), named.end(), ' ', '.');
      if (version() != 0 && version() < level.version) {
        verdict.kind = DiagnosticKind::needs_version;
        verdict.message =
            fmt::format("'.{}' needs '.version {}.{}' or later, the file has {}.{}", named, level.version / 10,
                        level.version % 10, module_.version_major, module_.version_minor);
      } else if (module_.target_sm != 0 && !runs_on(level.targets, {module_.target_sm, module_.target_suffix})) {
        verdict.kind = DiagnosticKind::needs_target;
        verdict.message =
            fmt::format("'.{}' needs a target among sm_{}, the file has {}", named, level.targets, module_.target);
      } else {
        continue;
      }
      verdict.candidates.clear();
      break;
    }
    return verdict;
  }
  if (elsewhere != nullptr) {
    verdict.kind = DiagnosticKind::needs_target;
    verdict.message =
        fmt::format("'{}' needs a target among sm_{}, the file has {}", spelling, elsewhere->targets, module_.target);
  } else if (too_old != nullptr) {
    verdict.kind = DiagnosticKind::needs_version;
    verdict.message = fmt::format("'{}' is not known after '.version {}.{}', the file has {}.{}", spelling,
                                  too_old->last_version / 10, too_old->last_version % 10, module_.version_major,
                                  module_.version_minor);
  } else if (too_new != nullptr) {
    verdict.kind = DiagnosticKind::needs_version;
    verdict.message =
        fmt::format("'{}' needs '.version {}.{}' or later, the file has {}.{}", spelling, too_new->version / 10,
                    too_new->version % 10, module_.version_major, module_.version_minor);
  } else {
    verdict.kind = form_kind(pattern.op);
    if (nearest.unclaimed_count != 0 &&
        (nearest.missing_count == 0 || nearest.unclaimed_count >= nearest.missing_count)) {
      verdict.message = nearest.missing_count == 0
                            ? fmt::format("'.{}' does not go with the rest of '{}'", nearest.first_unclaimed, spelling)
                            : fmt::format("'{}' has '.{}' where '{}' is expected", spelling, nearest.first_unclaimed,
                                          nearest.first_missing);
    } else {
      verdict.message = fmt::format("'{}' lacks '{}'", spelling, nearest.first_missing);
    }
  }
  return verdict;
}

std::string Validator::describe(const Function& function, const Operand& operand) const {
  const auto name = [&](std::string_view text) { return std::string(text); };
  switch (operand.kind) {
    case OperandKind::reg: {
      const Register& reg = function.registers[operand.id];
      if (reg.vector > 1 && operand.component == 0) {
        return fmt::format("'{}' of .v{} .{}", reg.name(), reg.vector, ptx::text(reg.type));
      }
      return fmt::format("'{}' of .{}", reg.name(), ptx::text(reg.type));
    }
    case OperandKind::integer:
      return fmt::format("the integer {}", static_cast<int64_t>(operand.value));
    case OperandKind::float32:
      return "an f32 constant";
    case OperandKind::float64:
      return "an f64 constant";
    case OperandKind::symbol:
      return fmt::format("the variable '{}'", module_.variables[operand.id].name);
    case OperandKind::function:
      return fmt::format("the function '{}'", module_.functions[operand.id].name);
    case OperandKind::label:
      return name("a label");
    case OperandKind::special:
      return fmt::format("'{}'", ptx::text(static_cast<SpecialRegister>(operand.id)));
    case OperandKind::address:
      return name("an address");
    case OperandKind::vector:
      return fmt::format("a list of {}", operand.child_count);
    case OperandKind::pair:
      return name("a pair");
    case OperandKind::sink:
      return name("'_'");
    case OperandKind::parameters:
      return name("a parameter list");
    case OperandKind::prototype:
      return name("a table");
    case OperandKind::none:
    case OperandKind::text:
      break;
  }
  return name("a name");
}

bool Validator::match_register(const Function& function, const OperandSpec& spec, const Operand& operand,
                               Failure& failure) const {
  const Register& reg = function.registers[operand.id];
  const auto mismatch = [&](DiagnosticKind kind, std::string_view expected) {
    return failure.set(kind, operand.at, fmt::format("expected {}, found {}", expected, describe(function, operand)));
  };
  if (is_predicate(spec.role)) {
    const bool written = spec.role == Role::predicate_destination;
    const bool plain = operand.component == 0 && !(written && (operand.negated || operand.value != 0));
    return (reg.type == Type::pred && plain) || mismatch(DiagnosticKind::bad_predicate, "a predicate register");
  }
  if (reg.type == Type::pred) {
    return mismatch(DiagnosticKind::bad_predicate, fmt::format("a register of .{}", ptx::text(spec.type)));
  }
  if (reg.vector > 1 && operand.component == 0) {
    return mismatch(DiagnosticKind::bad_vector, fmt::format("one register of .{}", ptx::text(spec.type)));
  }
  if (operand.component == 's' && spec.selector == Selector::none) {
    return mismatch(DiagnosticKind::operand_kind, "a whole register");
  }
  if (operand.component == 's' && !names_parts(spec.selector, operand.value)) {
    return mismatch(DiagnosticKind::operand_kind, fmt::format("a register with {}", parts_of(spec.selector)));
  }
  if (operand.negated && !spec.may_negate) {
    return failure.set(DiagnosticKind::operand_kind, operand.at, "a register is not negated here");
  }
  if (spec.role == Role::destination && operand.component == 0 && operand.value != 0) {
    return failure.set(DiagnosticKind::operand_kind, operand.at, "a destination has no offset");
  }
  if (spec.role == Role::generic_address) {
    const bool fits = bit_width(reg.type) == 32 || bit_width(reg.type) == 64;
    if (fits && (is_integer(reg.type) || is_bits(reg.type))) return true;
    return mismatch(DiagnosticKind::address_register, "a register of 32 or 64 bits");
  }
  if (types_agree(spec, reg.type)) return true;
  return mismatch(DiagnosticKind::operand_type,
                  fmt::format("a register of .{}{}", ptx::text(spec.type), spec.relaxed ? " or wider" : ""));
}

bool Validator::match_constant(const OperandSpec& spec, const Operand& operand, Failure& failure) const {
  const bool is_float = operand.kind != OperandKind::integer;
  const bool wants_float = kind(spec.type) == TypeKind::floating;
  const unsigned width = bit_width(spec.type);
  if (spec.role == Role::integer ? is_float : false) {
    return failure.set(DiagnosticKind::operand_kind, operand.at, "expected an integer constant, found a float");
  }
  if (spec.role != Role::integer && spec.role != Role::predicate_or_constant && !spec.is_late) {
    if (wants_float && (!is_float || width < 32)) {
      return failure.set(DiagnosticKind::operand_type, operand.at,
                         fmt::format("expected {} of .{}, found {}", width < 32 ? "a register" : "a constant",
                                     ptx::text(spec.type), is_float ? "a float" : "an integer"));
    }
    const unsigned have = operand.kind == OperandKind::float32 ? 32 : 64;
    if (!wants_float && is_float && !(is_bits(spec.type) && have == width)) {
      return failure.set(DiagnosticKind::operand_type, operand.at,
                         fmt::format("expected an integer of .{}, found a float", ptx::text(spec.type)));
    }
  }
  const auto value = static_cast<int64_t>(operand.value);
  if (spec.bounded && (value < spec.low || value > spec.high ||
                       (spec.allowed != 0 && value >= 0 && (spec.allowed >> value & 1) == 0))) {
    return failure.set(DiagnosticKind::immediate_range, operand.at,
                       spec.low == spec.high ? fmt::format("expected {}, found {}", spec.low, value)
                       : spec.allowed != 0   ? fmt::format("{} is not among the numbers allowed here", value)
                                             : fmt::format("expected {} to {}, found {}", spec.low, spec.high, value));
  }
  if (spec.multiple_of > 1 && value % spec.multiple_of != 0) {
    return failure.set(DiagnosticKind::immediate_range, operand.at,
                       fmt::format("expected a multiple of {}, found {}", spec.multiple_of, value));
  }
  return true;
}

bool Validator::match_address(const Function& function, const Instruction& instruction, const OperandSpec& spec,
                              const Operand& operand, Failure& failure) const {
  if (spec.role != Role::tensor_memory && spec.space == Space::generic &&
      ((module_.version_major != 0 && version() < 20) || (module_.target_sm != 0 && module_.target_sm < 20))) {
    return failure.set(DiagnosticKind::needs_target, operand.at,
                       "generic addresses need '.version 2.0' and sm_20 or later, expected a state space");
  }
  if (operand.kind != OperandKind::address) {
    return failure.set(DiagnosticKind::operand_kind, operand.at,
                       fmt::format("expected an address in brackets, found {}", describe(function, operand)));
  }
  if (operand.base == AddressBase::reg) {
    const Register& reg = function.registers[operand.id];
    const unsigned width = bit_width(reg.type);
    const bool tensor = spec.role == Role::tensor_memory;
    if (tensor && !spec.relaxed && !is_bits(reg.type)) {
      return failure.set(
          DiagnosticKind::address_register, operand.at,
          fmt::format("expected a register of .b32 as address, found '{}' of .{}", reg.name(), ptx::text(reg.type)));
    }
    const bool wide = !tensor && !spec.relaxed && needs_wide_address(spec.space) && module_.address_size == 64;
    if (is_integer(reg.type) || is_bits(reg.type)) {
      if (width == 64 && !tensor) return true;
      if (width == 32 && !wide) return true;
    }
    return failure.set(
        DiagnosticKind::address_register, operand.at,
        fmt::format(
            "expected a {}-bit register as address{}, found '{}' of .{}", wide ? 64 : 32,
            spec.space == Space::generic || tensor ? std::string() : fmt::format(" in .{}", ptx::text(spec.space)),
            reg.name(), ptx::text(reg.type)));
  }
  if (operand.base == AddressBase::immediate) {
    if (spec.space == Space::local || module_.version_major < 2) return true;
    return failure.set(DiagnosticKind::operand_kind, operand.at,
                       "expected a register or a variable as address, found a number, which only .local takes");
  }
  if (operand.base == AddressBase::variable) {
    const Variable& variable = module_.variables[operand.id];
    if (spec.role == Role::tensor_memory) {
      return failure.set(DiagnosticKind::space_mismatch, operand.at,
                         fmt::format("'{}' is no address in tensor memory, which a register holds", variable.name));
    }
    if (kind(variable.type) == TypeKind::opaque) {
      if (!reads_memory(instruction, spec)) return true;
      return failure.set(
          DiagnosticKind::operand_kind, operand.at,
          fmt::format("'{}' of .{} has no address to read or write at", variable.name, text(variable.type)));
    }
    Space have = variable.space;
    Space want = spec.space == Space::shared_cluster ? Space::shared : spec.space;
    const auto is_among = [&](const std::vector<VariableId>& list) {
      return std::find(list.begin(), list.end(), operand.id) != list.end();
    };
    if (have == Space::param && instruction.op == Op::st && is_among(function.parameters)) {
      return failure.set(
          DiagnosticKind::parameter_write, operand.at,
          fmt::format("expected a store to writable memory, found one to parameter '{}'", variable.name));
    }
    if (have == Space::param && instruction.op == Op::ld && is_among(function.results)) {
      return failure.set(
          DiagnosticKind::operand_kind, operand.at,
          fmt::format("expected memory that can be read, found '{}', a result, which is only written", variable.name));
    }
    if (want == Space::generic ? reaches(instruction.op, have) : want == have) return true;
    return failure.set(
        DiagnosticKind::space_mismatch, operand.at,
        fmt::format("'{}' is in .{}, the instruction addresses {}", variable.name, ptx::text(have),
                    want == Space::generic ? std::string("generic memory") : fmt::format(".{}", ptx::text(want))));
  }
  return true;
}

// [texture], [%rd1], [texture, ...]: no offset; before PTX 1.5 a texture was a variable in .tex.
bool Validator::match_opaque(const Function& function, const OperandSpec& spec, const Operand& operand,
                             Failure& failure) const {
  if (operand.kind != OperandKind::address || operand.base == AddressBase::immediate || operand.value != 0) {
    return failure.set(DiagnosticKind::operand_kind, operand.at,
                       fmt::format("expected a {} in brackets, without an offset, found {}", text(spec.type),
                                   describe(function, operand)));
  }
  if (operand.base == AddressBase::reg) {
    const Register& reg = function.registers[operand.id];
    if (version() < 31) {
      return failure.set(DiagnosticKind::needs_version, operand.at,
                         fmt::format("a {} in a register needs '.version 3.1' or later, the file has {}.{}",
                                     text(spec.type), module_.version_major, module_.version_minor));
    }
    if (bit_width(reg.type) == 64 && kind(reg.type) != TypeKind::floating) return true;
    return failure.set(DiagnosticKind::address_register, operand.at,
                       fmt::format("expected a 64-bit register as handle of a {}, found '{}' of .{}", text(spec.type),
                                   reg.name(), ptx::text(reg.type)));
  }
  if (operand.base != AddressBase::variable) return true;
  const Variable& variable = module_.variables[operand.id];
  // Of a unified texture the sampler's attributes are its own.
  const bool fits = variable.type == spec.type || (spec.type == Type::samplerref && variable.type == Type::texref) ||
                    (variable.space == Space::tex && spec.type == Type::texref);
  return fits || failure.set(DiagnosticKind::operand_type, operand.at,
                             fmt::format("expected a .{}, found {}", text(spec.type),
                                         kind(variable.type) == TypeKind::opaque
                                             ? fmt::format("'{}' of .{}", variable.name, text(variable.type))
                                             : fmt::format("the variable '{}'", variable.name)));
}

// cvta.local of a variable in .local; mapa and getctarank of one in .shared.
bool Validator::match_converted(const Instruction& instruction, const Operand& operand, Failure& failure) const {
  const Variable& variable = module_.variables[operand.id];
  if (instruction.op == Op::cvta && kind(variable.type) == TypeKind::opaque) return true;
  const bool is_shared = instruction.op != Op::cvta || instruction.space == Space::shared_cluster;
  const Space want = is_shared ? Space::shared : instruction.space;
  if (variable.space == want) return true;
  return failure.set(DiagnosticKind::space_mismatch, operand.at,
                     fmt::format("'{}' is in .{}, the instruction wants an address in .{}", variable.name,
                                 ptx::text(variable.space), ptx::text(want)));
}

// Elements have one width. Integers go together whatever their sign, and bits with everything, which makes the list one
// of bits.
bool Validator::match_elements(const Function& function, const Instruction& instruction, const OperandSpec& spec,
                               const Operand& list, Failure& failure) const {
  OperandSpec element = specs_[spec.first_child];
  const auto children = function.children(list);
  if (spec.child_count == 2) {
    const OperandSpec* expected = &specs_[spec.first_child + 1];
    for (const Operand& child : children) {
      if (!match(function, instruction, *expected, child, failure)) return false;
      expected = &element;
    }
    return true;
  }
  const Register* first = nullptr;
  const Register* typed = nullptr;  // the first that is not bits
  bool has_bits = false, has_typed = false, has_integer = false;
  for (const Operand& child : children) {
    has_bits |= child.kind == OperandKind::special;
    has_typed |= child.kind == OperandKind::integer || is_float(child.kind);
    has_integer |= child.kind == OperandKind::integer;
    if (child.kind != OperandKind::reg) continue;
    if (child.component != 0 && instruction.op == Op::wmma && element.role == Role::destination &&
        function.has(instruction, Mod::load)) {
      return failure.set(DiagnosticKind::bad_vector, child.at, "expected whole registers in the list of a 'wmma.load'");
    }
    const Register& reg = function.registers[child.id];
    if (reg.type == Type::pred) continue;  // said below
    if (first == nullptr) first = &reg;
    if (bit_width(reg.type) != bit_width(first->type)) {
      return failure.set(DiagnosticKind::bad_vector, child.at,
                         fmt::format("expected elements of one width in braces, found '{}' of .{} beside .{}",
                                     reg.name(), ptx::text(reg.type), ptx::text(first->type)));
    }
    has_bits |= is_bits(reg.type);
    if (is_bits(reg.type)) continue;
    if (typed == nullptr) typed = &reg;
    if (reg.type != typed->type && !(is_integer(reg.type) && is_integer(typed->type))) {
      return failure.set(DiagnosticKind::bad_vector, child.at,
                         fmt::format("expected elements of one kind in braces, found '{}' of .{} beside .{}",
                                     reg.name(), ptx::text(reg.type), ptx::text(typed->type)));
    }
  }
  const bool is_mixed = has_bits && (has_typed || typed != nullptr);
  const bool is_f64_product = instruction.op == Op::mma && element.type == Type::f64;
  const bool takes_integers =
      kind(element.type) == TypeKind::floating && (!is_matrix(instruction.op) || is_f64_product) &&
      (typed == nullptr ? is_f64_product && has_integer
                        : is_integer(typed->type) && bit_width(typed->type) == bit_width(element.type));
  if (is_predicate(element.role)) {
    // no type to widen
  } else if (is_mixed || takes_integers) {
    element.type = bits_of(bit_width(element.type));
  }
  for (const Operand& child : children) {
    if (is_mixed && is_float(child.kind) && element.role != Role::destination) continue;
    if (child.kind == OperandKind::special && reads_special(element, child)) continue;
    if (!match(function, instruction, element, child, failure)) return false;
  }
  return true;
}

bool Validator::match(const Function& function, const Instruction& instruction, const OperandSpec& spec,
                      const Operand& operand, Failure& failure) const {
  // A name that is not known was reported where it stands.
  if (operand.kind == OperandKind::text) return true;
  const auto other = [&] {
    DiagnosticKind kind = DiagnosticKind::operand_kind;
    if (is_predicate(spec.role)) kind = DiagnosticKind::bad_predicate;
    if (spec.role == Role::vector || operand.kind == OperandKind::vector) kind = DiagnosticKind::bad_vector;
    if (operand.kind == OperandKind::special) kind = DiagnosticKind::bad_special_register;
    return failure.set(kind, operand.at,
                       fmt::format("expected {}, found {}", wanted(spec), describe(function, operand)));
  };
  switch (spec.role) {
    case Role::destination:
    case Role::predicate_destination:
      if (operand.kind == OperandKind::sink) return spec.may_sink || other();
      return operand.kind == OperandKind::reg ? match_register(function, spec, operand, failure) : other();
    case Role::generic_address:
      if (operand.kind == OperandKind::integer) return true;
      [[fallthrough]];
    case Role::source:
      return operand.kind == OperandKind::reg ? match_register(function, spec, operand, failure) : other();
    case Role::predicate:
    case Role::predicate_or_constant: {
      if (operand.kind == OperandKind::reg) {
        Operand plain = operand;
        plain.negated = false;
        return match_register(function, spec, plain, failure);
      }
      // mov.pred reads %is_explicit_cluster.
      if (operand.kind == OperandKind::special && instruction.op == Op::mov &&
          type(static_cast<SpecialRegister>(operand.id)) == Type::pred) {
        return true;
      }
      const bool compares = instruction.op == Op::setp || instruction.op == Op::set;
      const bool is_bf16 = compares && (instruction.type() == Type::bf16 || instruction.type() == Type::bf16x2);
      const bool constant =
          operand.kind == OperandKind::integer && spec.role == Role::predicate_or_constant && !is_bf16;
      return constant ? match_constant(spec, operand, failure) : other();
    }
    case Role::special:
      if (operand.kind != OperandKind::special || operand.component != 0) return other();
      [[fallthrough]];
    case Role::constant_or_source:
    case Role::special_or_source:
    case Role::mov_source:
      switch (operand.kind) {
        case OperandKind::sink:
          return spec.may_sink || other();
        case OperandKind::reg:
          return match_register(function, spec, operand, failure);
        case OperandKind::integer:
        case OperandKind::float32:
        case OperandKind::float64:
          return match_constant(spec, operand, failure);
        case OperandKind::special: {
          if (spec.role == Role::constant_or_source) return other();
          const auto special = static_cast<SpecialRegister>(operand.id);
          const Type have = type(special);
          if (is_vector(special) && operand.component == 0 && instruction.vector == 1) {
            return failure.set(DiagnosticKind::bad_special_register, operand.at,
                               fmt::format("'{}' needs a component such as .x", ptx::text(special)));
          }
          const unsigned width = bit_width(spec.type);
          const bool fits = have != Type::pred && (is_integer(spec.type) || is_bits(spec.type)) &&
                            (width == bit_width(have) || (spec.relaxed && width < bit_width(have)) ||
                             (width == 16 && is_vector(special)) || special == SpecialRegister::gridid);
          if (fits) return true;
          return failure.set(DiagnosticKind::bad_special_register, operand.at,
                             fmt::format("'{}' is a .{}, the instruction reads a .{}", ptx::text(special),
                                         ptx::text(have), ptx::text(spec.type)));
        }
        case OperandKind::symbol:
        case OperandKind::function:
          // A number of its own: an address with an offset, or a function's.
          if (spec.role == Role::constant_or_source && operand.kind == OperandKind::symbol && !operand.has_offset)
            return other();
          if (operand.kind == OperandKind::symbol && kind(module_.variables[operand.id].type) == TypeKind::opaque &&
              bit_width(spec.type) != 64) {
            return other();
          }
          return (bit_width(spec.type) >= 16 && (is_integer(spec.type) || is_bits(spec.type))) || other();
        default:
          return other();
      }
    case Role::integer:
      return operand.kind == OperandKind::integer ? match_constant(spec, operand, failure) : other();
    case Role::variable_or_register:
      if (operand.kind == OperandKind::symbol) {
        if (instruction.op != Op::tex && instruction.op != Op::tld4)
          return match_converted(instruction, operand, failure);
        const Type sampler = module_.variables[operand.id].type;
        return sampler == Type::samplerref || sampler == Type::texref || other();
      }
      if (operand.kind == OperandKind::integer && instruction.op != Op::tex && instruction.op != Op::tld4) return true;
      return operand.kind == OperandKind::reg ? match_register(function, spec, operand, failure) : other();
    case Role::address:
    case Role::tensor_memory:
      if (operand.kind == OperandKind::address && operand.child_count != 0) {
        return failure.set(DiagnosticKind::operand_kind, operand.at,
                           "expected nothing but the address in the brackets");
      }
      return match_address(function, instruction, spec, operand, failure);
    case Role::opaque:
    case Role::address_with_more: {
      const bool fits = spec.role == Role::opaque ? match_opaque(function, spec, operand, failure)
                                                  : match_address(function, instruction, spec, operand, failure);
      if (!fits) return false;
      return match_brackets(function, instruction, spec, operand, failure, nullptr);
    }
    case Role::label:
      return operand.kind == OperandKind::label || other();
    case Role::table:
      return operand.kind == OperandKind::prototype || operand.kind == OperandKind::label || other();
    case Role::sink:
      return operand.kind == OperandKind::sink || other();
    case Role::vector: {
      const OperandSpec& element = specs_[spec.first_child];
      if (operand.kind == OperandKind::reg && operand.component == 0) {
        const Register& reg = function.registers[operand.id];
        if (reg.vector == spec.count && types_agree(element, reg.type)) return true;
      }
      if (operand.kind != OperandKind::vector) {
        // A list of one needs no braces.
        return spec.count == 1 ? match(function, instruction, element, operand, failure) : other();
      }
      const uint32_t given = operand.child_count;
      if (given != spec.count && !(spec.padded && given > spec.count && (given == 2 || given == 4))) {
        return failure.set(DiagnosticKind::bad_vector, operand.at,
                           fmt::format("expected {} elements in braces, found {}", spec.count, given));
      }
      if (!match_elements(function, instruction, spec, operand, failure)) return false;
      const auto children = function.children(operand);
      const bool all_sinks =
          std::all_of(children.begin(), children.end(), [](const Operand& o) { return o.kind == OperandKind::sink; });
      if (all_sinks && element.role == Role::constant_or_source) {
        return failure.set(DiagnosticKind::bad_vector, operand.at, "expected a value beside '_'");
      }
      return true;
    }
    case Role::pair: {
      const OperandSpec& first = specs_[spec.first_child];
      if (operand.kind != OperandKind::pair) {
        return spec.pair_optional ? match(function, instruction, first, operand, failure) : other();
      }
      if ((instruction.op == Op::tex || instruction.op == Op::tld4) && module_.target_sm != 0 &&
          module_.target_sm < 60) {
        return failure.set(
            DiagnosticKind::needs_target, operand.at,
            fmt::format("a predicate beside the texel needs sm_60 or later, the file has {}", module_.target));
      }
      if ((instruction.op == Op::tex || instruction.op == Op::tld4) && version() != 0 && version() < 71) {
        return failure.set(DiagnosticKind::needs_version, operand.at,
                           fmt::format("a predicate beside the texel needs '.version 7.1' or later, the file has {}.{}",
                                       module_.version_major, module_.version_minor));
      }
      const auto children = function.children(operand);
      if (children[0].kind == OperandKind::sink && children[1].kind == OperandKind::sink) {
        return failure.set(DiagnosticKind::bad_predicate, children[1].at, "expected a predicate beside '_'");
      }
      if (children[0].component != 0 && children[1].kind != OperandKind::sink) {
        return failure.set(DiagnosticKind::operand_kind, children[0].at,
                           "expected a whole register beside a predicate");
      }
      // Beside a second predicate the first may be the sink.
      OperandSpec left = first;
      if (left.role == Role::predicate_destination) left.may_sink = true;
      return match(function, instruction, left, children[0], failure) &&
             match(function, instruction, specs_[spec.first_child + 1], children[1], failure);
    }
    case Role::call:
      break;
  }
  return true;
}

// What stands in an address's brackets beside the address.
bool Validator::match_brackets(const Function& function, const Instruction& instruction, const OperandSpec& spec,
                               const Operand& address, Failure& failure, std::vector<MatchedOperand>* matches) const {
  const auto children = function.children(address);
  const auto& modes = module_.target_options;
  uint32_t next = 0;
  for (uint32_t i = 0; i < spec.child_count; ++i) {
    OperandSpec child = specs_[spec.first_child + i];
    const bool is_sampler = child.role == Role::variable_or_register;
    if (is_sampler && std::ranges::find(modes, "texmode_independent") != modes.end()) child.optional = false;
    if (next < children.size() && match(function, instruction, child, children[next], failure)) {
      if (matches != nullptr) matches->push_back({child, children[next]});
      ++next;
    } else if (!child.optional) {
      if (next < children.size()) return false;
      return failure.set(DiagnosticKind::operand_count, address.at,
                         fmt::format("expected {} in the brackets", wanted(child)));
    }
  }
  return next == children.size() ||
         failure.set(DiagnosticKind::operand_count, children[next].at, "unexpected operand in the brackets");
}

// An operand that fits `spec`, in its parts.
void Validator::append_matches(const Function& function, const Instruction& instruction, const OperandSpec& spec,
                               const Operand& operand, std::vector<MatchedOperand>& matches) const {
  if (spec.role == Role::pair) {
    const bool is_pair = operand.kind == OperandKind::pair;
    for (unsigned i = 0; i < (is_pair ? 2 : 1); ++i)
      matches.push_back({child(spec, i), is_pair ? function.children(operand)[i] : operand});
    return;
  }
  matches.push_back({spec, operand});
  const bool has_brackets = spec.role == Role::opaque || spec.role == Role::address_with_more;
  Failure none;
  if (has_brackets) match_brackets(function, instruction, spec, operand, none, &matches);
}

// Offsets of texels and depths to compare with are younger than the instructions that take them.
bool Validator::supports_late_operand(const Operand& operand, Failure& failure) const {
  if (version() != 0 && version() < 43) {
    return failure.set(DiagnosticKind::needs_version, operand.at,
                       fmt::format("an offset or a depth needs '.version 4.3' or later, the file has {}.{}",
                                   module_.version_major, module_.version_minor));
  }
  if (module_.target_sm != 0 && module_.target_sm < 30) {
    return failure.set(DiagnosticKind::needs_target, operand.at,
                       fmt::format("an offset or a depth needs sm_30 or later, the file has {}", module_.target));
  }
  return true;
}

// Of vmad either the product or the third source is negated, and nothing beside `.po`.
bool Validator::match_negation(const Function& function, const Instruction& instruction, Failure& failure) const {
  const auto operands = function.operands(instruction);
  const bool product = operands[1].negated != operands[2].negated, sum = operands[3].negated;
  const auto modifiers = function.modifiers(instruction);
  const bool plus_one = std::ranges::find(modifiers, Mod::po) != modifiers.end();
  if (!(product && sum) && !(plus_one && (product || sum))) return true;
  return failure.set(
      DiagnosticKind::operand_kind,
      operands[sum                   ? 3
               : operands[1].negated ? 1
                                     : 2]
          .at,
      plus_one ? "'.po' allows no negated operand" : "either the product or the third source is negated, not both");
}

bool Validator::match_list(const Function& function, const Instruction& instruction, const Candidate& candidate,
                           Failure& failure, std::vector<MatchedOperand>* matches) const {
  const auto operands = function.operands(instruction);
  size_t next = 0;
  for (uint32_t i = 0; i < candidate.spec_count; ++i) {
    const OperandSpec& spec = specs_[candidate.first_spec + i];
    if (spec.role == Role::call) return match_call(function, instruction, failure);
    failure.operand = static_cast<uint32_t>(next);
    if (next == operands.size()) {
      if (spec.optional) continue;
      return failure.set(
          DiagnosticKind::operand_count, instruction.opcode_at,
          fmt::format("'{}' lacks operand {}, expected {}", instruction.spelling, next + 1, wanted(spec)));
    }
    const Operand* operand = &operands[next];
    if (operand->kind == OperandKind::reg && !accepts_part_or_sum(instruction, module_.target_sm, spec, *operand)) {
      return failure.set(
          DiagnosticKind::operand_kind, operand->at,
          fmt::format("operand {} of '{}': expected a register as it is", next + 1, instruction.spelling));
    }
    if (operand->kind == OperandKind::vector && operand->child_count == 1 && spec.role != Role::vector &&
        takes_braces(instruction, spec)) {
      operand = &function.children(*operand)[0];
    }
    if (next == 0 && operand->kind == OperandKind::pair && is_one_register(spec.role)) {
      // `d|_` of an instruction with one result
      const auto both = function.children(*operand);
      if (both[0].kind == OperandKind::reg && both[1].kind == OperandKind::sink) operand = &both[0];
    }
    // A register of untyped bits behind the coordinates is a depth and no list of one offset, as ptxas has it.
    const bool may_be_depth = spec.purpose == Purpose::offsets && i + 1 < candidate.spec_count &&
                              specs_[candidate.first_spec + i + 1].purpose == Purpose::depth;
    if (may_be_depth && operand->kind == OperandKind::reg && instruction.types[1] == Type::f32 &&
        is_bits(function.registers[operand->id].type))
      continue;
    if (match(function, instruction, spec, *operand, failure)) {
      if (spec.is_late && !supports_late_operand(*operand, failure)) return false;
      if (matches != nullptr) append_matches(function, instruction, spec, *operand, *matches);
      ++next;
      continue;
    }
    if (spec.optional) continue;
    if (failure.kind == DiagnosticKind::operand_type) {
      failure.kind = type_kind(instruction.op, spec.role == Role::destination || spec.role == Role::vector);
    }
    failure.message = fmt::format("operand {} of '{}': {}", next + 1, instruction.spelling, failure.message);
    return false;
  }
  if (next == operands.size()) {
    return instruction.op != Op::vmad || match_negation(function, instruction, failure);
  }
  failure.operand = static_cast<uint32_t>(next);
  // An optional item that did not fit leaves its own reason, which is better than "too many".
  if (!failure.message.empty() && failure.at == operands[next].at) {
    failure.message = fmt::format("operand {} of '{}': {}", next + 1, instruction.spelling, failure.message);
    return false;
  }
  return failure.set(DiagnosticKind::operand_count, operands[next].at,
                     fmt::format("'{}' takes {} operands, found {}", instruction.spelling, next, operands.size()));
}

bool Validator::check(const Function& function, const Instruction& instruction, const Verdict& verdict, uint32_t& form,
                      Mistake& mistake) const {
  if (verdict.candidates.empty()) {
    mistake = {verdict.kind, instruction.opcode_at, verdict.message};
    return false;
  }
  Failure furthest;
  bool any = false;
  for (const Candidate& candidate : verdict.candidates) {
    Failure failure;
    if (match_list(function, instruction, candidate, failure, nullptr)) {
      form = candidate.form;
      return true;
    }
    if (!any || failure.operand > furthest.operand) furthest = std::move(failure);
    any = true;
  }
  mistake = {furthest.kind, furthest.at, std::move(furthest.message)};
  return false;
}

Candidate Validator::row_of(const Instruction& instruction, const std::vector<OpcodeWord>& words) {
  Candidate row;
  row.form = instruction.form;
  row.first_spec =
      static_cast<uint32_t>(compile_operands(all_forms()[row.form], context_of(instruction, words), specs_));
  row.spec_count = static_cast<uint32_t>(specs_.size()) - row.first_spec;
  return row;
}

bool Validator::read(const Function& function, const Instruction& instruction, const Candidate& row,
                     std::vector<MatchedOperand>& matches) const {
  matches.clear();
  Failure failure;
  return match_list(function, instruction, row, failure, &matches);
}

}  // namespace ptxkit::ptx
