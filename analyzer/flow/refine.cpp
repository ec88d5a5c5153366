#include "analyzer/flow/refine.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "analyzer/flow/transfer.hpp"
#include "analyzer/ptx/facts.hpp"

namespace ptxkit::flow {

using ptx::Op;
using ptx::TypeKind;

namespace {

constexpr unsigned kMaxDepth = 8;
constexpr unsigned kMaxTestSteps = 32;

bool is_number(ptx::Type type) { return ptx::kind(type) != TypeKind::floating && ptx::kind(type) != TypeKind::packed; }

Bits keep(Bits bits, uint64_t mask) { return {bits.zero & mask, bits.one & mask}; }

Fact number(Bits bits, unsigned width) {
  Fact fact;
  fact.reached = true;
  fact.bits = truncate(bits, width);
  fact.low = fact.bits.minimum();
  fact.high = std::min(fact.bits.maximum(), low_mask(width));
  return fact;
}

}  // namespace

std::vector<TestedBits> tested_bits(const Ssa& ssa, const Condition& condition) {
  const ptx::Function& function = ssa.graph().function();
  const Value& predicate = ssa.value(condition.predicate);
  if (predicate.kind != Value::Kind::result || predicate.old != kNone) return {};
  const Operation test = operation_of(ssa, condition.predicate);
  if (test.instruction->op != Op::setp || test.source_count != 2 || test.part != 0) return {};
  const ptx::Comparison comparison = ptx::comparison_of(function, *test.instruction);
  if (comparison != (condition.expected ? ptx::Comparison::eq : ptx::Comparison::ne)) return {};
  const Source left = source_of(ssa, test.first_source), right = source_of(ssa, test.first_source + 1);
  if (right.kind != Source::Kind::constant || left.kind != Source::Kind::value) return {};
  if (!is_number(test.instruction->type())) return {};

  std::vector<TestedBits> found;
  const uint64_t compared = low_mask(ptx::bit_width(test.instruction->type()));
  std::vector<TestedBits> work{{left.id, keep(Bits::constant(right.constant), compared)}};
  for (unsigned steps = 0; !work.empty() && steps < kMaxTestSteps; ++steps) {
    const auto [id, bits] = work.back();
    work.pop_back();
    if (!bits.known()) continue;
    found.push_back({id, bits});
    const Value& value = ssa.value(id);
    if (value.kind != Value::Kind::result || value.old != kNone) continue;
    const Operation operation = operation_of(ssa, id);
    const ptx::Instruction& instruction = *operation.instruction;
    auto push = [&](unsigned i, Bits known) {
      const Source source = source_of(ssa, operation.first_source + i);
      if (source.kind == Source::Kind::value && operation.parts == 1) work.push_back({source.id, known});
    };
    if (!is_number(instruction.type())) continue;
    if ((instruction.op == Op::and_ || instruction.op == Op::rem) && operation.source_count == 2) {
      const Source mask = source_of(ssa, operation.first_source + 1);
      if (mask.kind != Source::Kind::constant) continue;
      if (instruction.op == Op::and_)
        push(0, keep(bits, mask.constant));
      else if (std::has_single_bit(mask.constant))
        push(0, keep(bits, mask.constant - 1));
    } else if (instruction.op == Op::or_ && operation.source_count == 2) {
      push(0, {bits.zero, 0});
      push(1, {bits.zero, 0});
    } else if (instruction.op == Op::mov && operation.source_count == 1) {
      push(0, bits);
    } else if (instruction.op == Op::cvt && instruction.type_count == 2 && is_number(instruction.types[1]) &&
               !ptx::facts_of(function, instruction).saturates) {
      push(0,
           keep(bits, low_mask(std::min(ptx::bit_width(instruction.types[0]), ptx::bit_width(instruction.types[1])))));
    }
  }
  return found;
}

Refinement::Refinement(const Forms& forms, std::vector<Condition> conditions)
    : forms_(&forms), domain_(&forms.domain()), conditions_(std::move(conditions)) {
  for (const Condition& condition : conditions_) {
    const auto found = tested_bits(domain_->ssa(), condition);
    tests_.insert(tests_.end(), found.begin(), found.end());
  }
}

void Refinement::apply_tests(ValueId id, Fact& fact) const {
  if (fact.base != kNoBase) return;
  for (const TestedBits& test : tests_) {
    // The same special register, read twice, is one quantity.
    if (test.value != id && !(forms_->of(test.value) == forms_->of(id))) continue;
    fact.bits.zero |= test.bits.zero;
    fact.bits.one |= test.bits.one;
  }
}

Fact Refinement::fact_of(const Source& source, unsigned width, unsigned depth) const {
  if (source.kind == Source::Kind::value) return fact(source.id, depth);
  return domain_->fact_of(source, width);
}

Fact Refinement::fact(ValueId id, unsigned depth) const {
  Fact known = domain_->fact(id);
  const Value& value = domain_->ssa().value(id);
  if (depth < kMaxDepth && value.kind == Value::Kind::result) {
    if (value.old == kNone) {
      const Fact sharper = computed(id, depth + 1);
      if (sharper.reached && sharper.base == known.base) {
        known.bits.zero |= sharper.bits.zero;
        known.bits.one |= sharper.bits.one;
      }
    } else {
      const ptx::Instruction& instruction = domain_->ssa().graph().function().instructions[value.instruction];
      const ValueId guard = domain_->ssa().guard(value.instruction);
      for (const Condition& condition : conditions_) {
        if (condition.predicate != guard) continue;
        const bool runs = condition.expected != instruction.guard.negated;
        const Fact chosen = runs ? computed(id, depth + 1) : fact(value.old, depth + 1);
        if (chosen.reached) known = chosen;
        break;
      }
    }
  }
  apply_tests(id, known);
  return known;
}

Fact Refinement::computed(ValueId id, unsigned depth) const {
  const Ssa& ssa = domain_->ssa();
  const ptx::Function& function = ssa.graph().function();
  const Operation operation = operation_of(ssa, id);
  const ptx::Instruction& instruction = *operation.instruction;
  const unsigned width = operation.width;
  if (operation.parts != 1 || width < 8 || !is_number(instruction.type())) return {};
  const unsigned type_width = ptx::bit_width(instruction.type()) ? ptx::bit_width(instruction.type()) : width;
  auto input = [&](unsigned i, unsigned bits) {
    return i < operation.source_count ? fact_of(source_of(ssa, operation.first_source + i), bits, depth) : Fact{};
  };
  auto plain = [&](unsigned i, unsigned bits) {
    const Fact from = input(i, bits);
    return number(domain_->absolute(from), bits);
  };
  // At most one side keeps its base.
  auto sum = [&](Fact a, Fact b) {
    if (a.base == kNoBase) std::swap(a, b);
    Fact fact = number(add(a.bits, domain_->absolute(b)), width);
    fact.base = a.base;
    return fact;
  };
  switch (instruction.op) {
    case Op::mov:
    case Op::cvta:
      if (operation.source_count != 1 || source_of(ssa, operation.first_source).kind == Source::Kind::none) return {};
      return input(0, width);
    case Op::cvt: {
      if (instruction.type_count < 2 || !is_number(instruction.types[1]) ||
          ptx::facts_of(function, instruction).saturates)
        return {};
      const unsigned to = ptx::bit_width(instruction.types[0]), from = ptx::bit_width(instruction.types[1]);
      Bits bits = truncate(plain(0, from).bits, from);
      if (ptx::kind(instruction.types[1]) == TypeKind::signed_int && to > from) bits = sign_extend(bits, from);
      return number(truncate(bits, std::min(to, width)), width);
    }
    case Op::add:
      return sum(input(0, type_width), input(1, type_width));
    case Op::sub:
      return number(subtract(plain(0, type_width).bits, plain(1, type_width).bits), width);
    case Op::mad:
      return sum(integer_multiply(function, instruction, plain(0, type_width), plain(1, type_width), width),
                 input(2, width));
    case Op::and_:
      return number(bit_and(plain(0, width).bits, plain(1, width).bits), width);
    case Op::or_:
      return number(bit_or(plain(0, width).bits, plain(1, width).bits), width);
    default:
      break;
  }
  std::array<Fact, 4> inputs;
  const unsigned count = std::min(operation.source_count, 4u);
  for (unsigned i = 0; i < count; ++i)
    inputs[i] = plain(i, (instruction.op == Op::shl || instruction.op == Op::shr) && i ? 32 : type_width);
  return number_operation(function, operation, {inputs.data(), count});
}

Bits Refinement::bits(ValueId id) const {
  const Fact refined = fact(id, 0);
  return refined.base == domain_->fact(id).base ? refined.bits : domain_->absolute(refined);
}

Bits Refinement::bits_of_atom(AtomId id) const {
  const Atom& atom = forms_->atom(id);
  if (atom.kind == Atom::Kind::value) return bits(atom.id);
  Bits known = forms_->bits(id);
  for (const TestedBits& test : tests_) {
    const Form form = forms_->of(test.value);
    if (form.base != kNoBase || form.constant || form.terms.size() != 1 || form.terms[0].atom != id ||
        form.terms[0].coefficient != 1)
      continue;
    known.zero |= test.bits.zero;
    known.one |= test.bits.one;
  }
  return known;
}

std::pair<unsigned, uint64_t> Refinement::residue(const Form& form, unsigned limit_bits) const {
  unsigned known = std::min(limit_bits, form.modulus_bits);
  uint64_t value = static_cast<uint64_t>(form.constant);
  for (const Term& term : form.terms) {
    const uint64_t coefficient = static_cast<uint64_t>(term.coefficient);
    const Bits of_atom = bits_of_atom(term.atom);
    known = std::min(known, static_cast<unsigned>(std::countr_zero(coefficient)) + of_atom.known_low());
    value += coefficient * of_atom.low_value();
  }
  return {known, value & low_mask(known)};
}

}  // namespace ptxkit::flow
