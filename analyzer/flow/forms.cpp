#include "analyzer/flow/forms.hpp"

#include <algorithm>

#include "analyzer/ptx/facts.hpp"

namespace ptxkit::flow {

using ptx::Op;
using ptx::TypeKind;

namespace {

constexpr size_t kMaxTerms = 8;
constexpr size_t kMaxOpenedTerms = 64;
constexpr unsigned kMaxOpenings = 256;
constexpr unsigned kMaxExpansions = 8;
constexpr int64_t kFar = INT64_MAX / 4;

int64_t wrap_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrap_multiply(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int64_t sign_extended(uint64_t value, unsigned width) {
  if (width >= 64) return static_cast<int64_t>(value);
  const unsigned shift = 64 - width;
  return static_cast<int64_t>(value << shift) >> shift;
}
int64_t clamp(__int128 value) { return value > kFar ? kFar : value < -kFar ? -kFar : static_cast<int64_t>(value); }

}  // namespace

Form add(const Form& a, const Form& b) {
  Form result;
  result.base = a.base != kNoBase ? a.base : b.base;
  result.modulus_bits = std::min(a.modulus_bits, b.modulus_bits);
  result.constant = wrap_add(a.constant, b.constant);
  size_t i = 0, j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    if (j == b.terms.size() || (i < a.terms.size() && a.terms[i].atom < b.terms[j].atom)) {
      result.terms.push_back(a.terms[i++]);
    } else if (i == a.terms.size() || b.terms[j].atom < a.terms[i].atom) {
      result.terms.push_back(b.terms[j++]);
    } else {
      const int64_t sum = wrap_add(a.terms[i].coefficient, b.terms[j].coefficient);
      if (sum) result.terms.push_back({a.terms[i].atom, sum});
      ++i;
      ++j;
    }
  }
  return result;
}

Form scale(const Form& a, int64_t factor) {
  Form result;
  result.base = a.base;
  if (factor == 0) return result;
  result.modulus_bits =
      std::min(64u, a.modulus_bits + static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(factor))));
  result.constant = wrap_multiply(a.constant, factor);
  for (const Term& term : a.terms)
    if (const int64_t product = wrap_multiply(term.coefficient, factor)) result.terms.push_back({term.atom, product});
  return result;
}

Form subtract(const Form& a, const Form& b) {
  Form negative =
      scale({.base = kNoBase, .modulus_bits = b.modulus_bits, .constant = b.constant, .terms = b.terms}, -1);
  Form result = add(a, negative);
  result.base = a.base == b.base ? kNoBase : a.base;
  return result;
}

Forms::Forms(const Domain& domain, const Loops& loops) : domain_(&domain), loops_(&loops) {
  const Ssa& ssa = domain.ssa();
  forms_.resize(ssa.size());
  for (const ValueId id : ssa.order()) store(id, compute(id, kMaxTerms));
  find_inductions();
}

AtomId Forms::find_or_add(const Atom& atom) {
  const auto [place, added] = atom_index_.try_emplace(atom, static_cast<AtomId>(atoms_.size()));
  if (added) atoms_.push_back(atom);
  return place->second;
}

void Forms::store(ValueId id, const Form& form) {
  forms_[id] = {form.base, static_cast<uint32_t>(terms_.size()), static_cast<uint16_t>(form.terms.size()),
                static_cast<uint16_t>(form.modulus_bits), form.constant};
  terms_.insert(terms_.end(), form.terms.begin(), form.terms.end());
}

Form Forms::of(ValueId id) const {
  const Stored& stored = forms_[id];
  return {stored.base,
          stored.modulus_bits,
          stored.constant,
          {terms_.begin() + stored.first, terms_.begin() + stored.first + stored.count}};
}

Form Forms::as_atom(ValueId id) {
  const Fact& fact = domain_->fact(id);
  const unsigned width = width_of(domain_->ssa(), id);
  Form form;
  form.base = fact.base;
  form.modulus_bits = std::min(64u, width);
  if (fact.reached && fact.bits.known() == ~0ull) {
    form.constant = sign_extended(fact.bits.one, width);
    return form;
  }
  form.terms.push_back({find_or_add({Atom::Kind::value, id, 0, width}), 1});
  return form;
}

Form Forms::of(const Source& source, unsigned width) {
  Form form;
  form.modulus_bits = std::min(64u, width);
  switch (source.kind) {
    case Source::Kind::constant:
      form.constant = sign_extended(source.constant, width);
      return form;
    case Source::Kind::value:
      return of(source.id);
    case Source::Kind::variable:
      form.base = domain_->fact_of(source, width).base;
      form.constant = static_cast<int64_t>(source.constant);
      return form;
    case Source::Kind::special: {
      const auto special = static_cast<ptx::SpecialRegister>(source.id);
      const SpecialRange range = range_of(special, source.component, domain_->shape());
      if (range.low == range.high)
        form.constant = static_cast<int64_t>(range.low);
      else
        form.terms.push_back(
            {find_or_add({Atom::Kind::special, source.id, source.component, ptx::bit_width(ptx::type(special))}), 1});
      return form;
    }
    default:
      form.modulus_bits = 0;  // nothing is known, not even one bit
      return form;
  }
}

Form Forms::address(const ptx::Access& access) {
  const Ssa& ssa = domain_->ssa();
  const Source base = address_base(ssa, access.address);
  const unsigned width = base.kind == Source::Kind::value ? width_of(ssa, base.id) : 64;
  Form form = of(base, width);
  const auto& operand = ssa.graph().function().operand_pool[access.address];
  form.constant = wrap_add(form.constant, static_cast<int64_t>(operand.value));
  return form;
}

Form Forms::compute(ValueId id, size_t max_terms) {
  const Ssa& ssa = domain_->ssa();
  const Value& value = ssa.value(id);
  const Fact& fact = domain_->fact(id);
  if (value.kind != Value::Kind::result || value.old != kNone) return as_atom(id);
  if (fact.reached && fact.bits.known() == ~0ull) return as_atom(id);  // a constant, or a base and a constant
  const Operation operation = operation_of(ssa, id);
  const ptx::Instruction& instruction = *operation.instruction;
  const ptx::Function& function = ssa.graph().function();
  const TypeKind kind = ptx::kind(instruction.type());
  if (operation.parts != 1 || kind == TypeKind::floating || kind == TypeKind::packed || operation.width < 8)
    return as_atom(id);
  const unsigned width = operation.width;
  const unsigned type_width = ptx::bit_width(instruction.type()) ? ptx::bit_width(instruction.type()) : width;
  auto source = [&](unsigned i) { return source_of(ssa, operation.first_source + i); };
  auto known = [&](unsigned i) {
    return source(i).kind != Source::Kind::none && source(i).kind != Source::Kind::function;
  };
  auto input = [&](unsigned i, unsigned bits) { return of(source(i), bits); };
  // As a number: a summand that has a base of its own is one opaque quantity.
  auto number = [&](unsigned i, unsigned bits) {
    Form form = input(i, bits);
    if (form.base == kNoBase) return form;
    const Source from = source(i);
    if (from.kind != Source::Kind::value) return Form{.modulus_bits = 0};
    return Form{.modulus_bits = std::min(64u, bits),
                .terms = {{find_or_add({Atom::Kind::whole, from.id, 0, bits}), 1}}};
  };
  auto finish = [&](Form form) {
    form.modulus_bits = std::min(form.modulus_bits, width);
    if (form.base != fact.base || form.terms.size() > max_terms || form.modulus_bits < std::min(width, 32u))
      return as_atom(id);
    return form;
  };
  // A value of `from` bits as a number of more bits.
  auto widen = [&](Form form, unsigned from, bool is_signed) {
    if (form.base != kNoBase) return form;
    const Interval range = interval(form);
    const int64_t limit = from >= 63 ? kFar : int64_t{1} << from;
    const bool exact = form.modulus_bits >= from && (is_signed ? range.low >= -(limit / 2) && range.high < limit / 2
                                                               : range.low >= 0 && range.high < limit);
    form.modulus_bits = exact ? 64 : std::min(form.modulus_bits, from);
    return form;
  };
  auto sum = [&](const Form& a, const Form& b) {
    if (a.base != kNoBase && b.base != kNoBase) return as_atom(id);
    return finish(add(a, b));
  };
  auto product = [&](unsigned i, unsigned j) -> std::optional<Form> {
    Form a = number(i, type_width), b = number(j, type_width);
    if (a.modulus_bits == 0 || b.modulus_bits == 0) return std::nullopt;
    if (!a.is_constant() && !b.is_constant()) return std::nullopt;
    const ptx::Product half = ptx::facts_of(function, instruction).product;
    if (half == ptx::Product::high) return std::nullopt;
    if (half == ptx::Product::wide) {
      a = widen(a, type_width, kind == TypeKind::signed_int);
      b = widen(b, type_width, kind == TypeKind::signed_int);
      if (kind != TypeKind::signed_int) {
        if (a.is_constant())
          a.constant = static_cast<int64_t>(static_cast<uint64_t>(a.constant) & low_mask(type_width));
        if (b.is_constant())
          b.constant = static_cast<int64_t>(static_cast<uint64_t>(b.constant) & low_mask(type_width));
      }
      if (a.is_constant()) a.modulus_bits = 64;
      if (b.is_constant()) b.modulus_bits = 64;
    }
    return a.is_constant() ? scale(b, a.constant) : scale(a, b.constant);
  };

  switch (instruction.op) {
    case Op::mov:
    case Op::cvta:
      if (operation.source_count != 1 || !known(0)) return as_atom(id);
      return finish(input(0, width));
    case Op::add:
      if (!known(0) || !known(1)) return as_atom(id);
      {
        Form a = input(0, width), b = input(1, width);
        if (a.base != kNoBase && b.base != kNoBase) {
          if (a.base != fact.base)
            a = number(0, width);
          else
            b = number(1, width);
          if (a.modulus_bits == 0 || b.modulus_bits == 0) return as_atom(id);
        }
        return sum(a, b);
      }
    case Op::sub: {
      if (!known(0) || !known(1)) return as_atom(id);
      const Form a = input(0, width);
      Form b = input(1, width);
      if (b.base != kNoBase && b.base != a.base) b = number(1, width);
      if (b.modulus_bits == 0) return as_atom(id);
      return finish(subtract(a, b));
    }
    case Op::mul: {
      if (!known(0) || !known(1)) return as_atom(id);
      const auto form = product(0, 1);
      return form ? finish(*form) : as_atom(id);
    }
    case Op::mad: {
      if (!known(0) || !known(1) || !known(2)) return as_atom(id);
      const auto form = product(0, 1);
      return form ? sum(*form, input(2, width)) : as_atom(id);
    }
    case Op::shl: {
      if (!known(0) || source(1).kind != Source::Kind::constant || source(1).constant >= width) return as_atom(id);
      const Form a = number(0, width);
      return a.modulus_bits ? finish(scale(a, int64_t{1} << source(1).constant)) : as_atom(id);
    }
    case Op::and_: {
      // A mask that clears nothing.
      if (!known(0) || source(1).kind != Source::Kind::constant) return as_atom(id);
      const Form a = input(0, width);
      if (a.base != kNoBase || source(0).kind != Source::Kind::value) return as_atom(id);
      if (domain_->fact(source(0).id).bits.maximum() & ~source(1).constant & low_mask(width)) return as_atom(id);
      return finish(a);
    }
    case Op::or_:
    case Op::xor_: {
      if (!known(0) || !known(1)) return as_atom(id);
      const Form a = input(0, width), b = input(1, width);
      const Bits x = domain_->fact_of(source(0), width).bits, y = domain_->fact_of(source(1), width).bits;
      if (instruction.op == Op::or_ && (a.base == kNoBase) != (b.base == kNoBase)) {
        return fact.base != kNoBase ? sum(a, b) : as_atom(id);
      }
      if (a.base != kNoBase || b.base != kNoBase || (x.maximum() & y.maximum() & low_mask(width))) return as_atom(id);
      return sum(a, b);
    }
    case Op::cvt: {
      if (instruction.type_count < 2 || !known(0) || ptx::facts_of(function, instruction).saturates) return as_atom(id);
      const ptx::Type to = instruction.types[0], from = instruction.types[1];
      if (ptx::kind(to) == TypeKind::floating || ptx::kind(from) == TypeKind::floating ||
          ptx::kind(to) == TypeKind::packed || ptx::kind(from) == TypeKind::packed)
        return as_atom(id);
      const unsigned to_width = ptx::bit_width(to), from_width = ptx::bit_width(from);
      Form a = input(0, from_width);
      if (to_width > from_width) {
        if (source(0).kind == Source::Kind::value && width_of(ssa, source(0).id) > from_width) return as_atom(id);
        return finish(widen(a, from_width, ptx::kind(from) == TypeKind::signed_int));
      }
      if (to_width < width) return as_atom(id);  // truncated and then extended again
      a.modulus_bits = std::min(a.modulus_bits, to_width);
      return finish(a);
    }
    case Op::ld: {
      if (instruction.space != ptx::Space::param) return as_atom(id);
      if (fact.base != kNoBase) return as_atom(id);
      const Source from = address_base(ssa, operation.first_source);
      if (from.kind != Source::Kind::variable || domain_->module().variables[from.id].parameter_index == kNone)
        return as_atom(id);
      const uint64_t offset = function.operand_pool[operation.first_source].value;
      if (type_width != width) return as_atom(id);
      return Form{.modulus_bits = std::min(64u, width),
                  .terms = {{find_or_add({Atom::Kind::parameter, from.id, offset, width}), 1}}};
    }
    default:
      return as_atom(id);
  }
}

Bits Forms::bits(AtomId id) const {
  const Atom& atom = atoms_[id];
  switch (atom.kind) {
    case Atom::Kind::value:
      return domain_->fact(atom.id).bits;
    case Atom::Kind::special: {
      const SpecialRange range =
          range_of(static_cast<ptx::SpecialRegister>(atom.id), static_cast<uint8_t>(atom.detail), domain_->shape());
      return below(range.high);
    }
    case Atom::Kind::parameter:
      return truncate({}, atom.width);
    default:
      return {};
  }
}

Interval Forms::interval(AtomId id) const {
  const Atom& atom = atoms_[id];
  switch (atom.kind) {
    case Atom::Kind::value: {
      const Fact& fact = domain_->fact(atom.id);
      if (fact.base != kNoBase) return {-kFar, kFar};
      return {clamp(fact.low), clamp(fact.high)};
    }
    case Atom::Kind::special: {
      const SpecialRange range =
          range_of(static_cast<ptx::SpecialRegister>(atom.id), static_cast<uint8_t>(atom.detail), domain_->shape());
      return {clamp(range.low), clamp(range.high)};
    }
    case Atom::Kind::parameter: {
      const ParameterFacts* promised =
          atom.detail ? nullptr : domain_->shape().parameter(domain_->module().variables[atom.id].name);
      if (promised && promised->low && promised->high) return {clamp(*promised->low), clamp(*promised->high)};
      return {0, clamp(low_mask(atom.width))};
    }
    default:
      return {0, kFar};
  }
}

Interval Forms::interval(const Form& form) const {
  __int128 low = form.constant, high = form.constant;
  for (const Term& term : form.terms) {
    const Interval range = interval(term.atom);
    const __int128 a = static_cast<__int128>(range.low) * term.coefficient;
    const __int128 b = static_cast<__int128>(range.high) * term.coefficient;
    low += std::min(a, b);
    high += std::max(a, b);
  }
  return {clamp(low), clamp(high)};
}

std::pair<unsigned, uint64_t> Forms::residue(const Form& form, unsigned limit_bits) const {
  unsigned known = std::min(limit_bits, form.modulus_bits);
  uint64_t value = static_cast<uint64_t>(form.constant);
  for (const Term& term : form.terms) {
    const uint64_t coefficient = static_cast<uint64_t>(term.coefficient);
    const Bits of_atom = bits(term.atom);
    known = std::min(known, static_cast<unsigned>(std::countr_zero(coefficient)) + of_atom.known_low());
    value += coefficient * of_atom.low_value();
  }
  return {known, value & low_mask(known)};
}

void Forms::find_inductions() {
  const Ssa& ssa = domain_->ssa();
  const Graph& graph = ssa.graph();
  for (LoopId loop = 0; loop < loops_->all().size(); ++loop) {
    const BlockId header = loops_->loop(loop).header;
    if (header == 0) continue;  // the entry: its first iteration has no edge
    for (const ValueId phi : ssa.phis(header)) {
      const unsigned width = width_of(ssa, phi);
      if (width < 8 || width > 64) continue;
      const Form self = of(phi);
      if (self.terms.size() != 1) continue;
      Induction found{.loop = loop};
      bool is_linear = true, has_step = false, has_start = false;
      const auto predecessors = graph.predecessors(header);
      for (uint32_t edge = 0; edge < predecessors.size() && is_linear; ++edge) {
        const ValueId argument = ssa.arguments(phi)[edge];
        if (argument == kNone) continue;
        const Form form = of(argument);
        if (form.base != self.base) is_linear = false;
        if (loops_->is_back_edge(predecessors[edge], header)) {
          const Form step = subtract(form, self);
          is_linear = is_linear && step.terms.empty() && (!has_step || step.constant == found.step);
          found.step = step.constant;
          has_step = true;
        } else {
          Form start = form;
          start.base = kNoBase;
          is_linear = is_linear && (!has_start || start == found.start);
          found.start = start;
          has_start = true;
        }
      }
      if (is_linear && has_step && has_start) inductions_.emplace(phi, std::move(found));
    }
  }
}

const Induction* Forms::induction(ValueId phi) const {
  const auto found = inductions_.find(phi);
  return found == inductions_.end() ? nullptr : &found->second;
}

Form Forms::expand(const Form& form) {
  Form result = form;
  for (unsigned round = 0; round < kMaxExpansions; ++round) {
    const auto term = std::find_if(result.terms.begin(), result.terms.end(), [&](const Term& t) {
      return atoms_[t.atom].kind == Atom::Kind::value && induction(atoms_[t.atom].id);
    });
    if (term == result.terms.end()) return result;
    const Atom atom = atoms_[term->atom];
    const int64_t coefficient = term->coefficient;
    const Induction& found = *induction(atom.id);
    result.terms.erase(term);
    Form start = found.start;
    start.modulus_bits = std::min(start.modulus_bits, atom.width);
    Form step{.modulus_bits = atom.width,
              .terms = {{find_or_add({Atom::Kind::iteration, found.loop, 0, 64}), found.step}}};
    if (found.step == 0) step.terms.clear();
    const BaseId base = result.base;
    result = add(result, scale(add(start, step), coefficient));
    result.base = base;
  }
  return result;
}

std::optional<std::pair<ValueId, unsigned>> Forms::masked(ValueId id) const {
  const Ssa& ssa = domain_->ssa();
  const Value& value = ssa.value(id);
  if (value.kind != Value::Kind::result || value.old != kNone) return std::nullopt;
  const Operation operation = operation_of(ssa, id);
  if (operation.instruction->op != Op::and_) return std::nullopt;
  const Source of = source_of(ssa, operation.first_source), mask = source_of(ssa, operation.first_source + 1);
  if (of.kind != Source::Kind::value || mask.kind != Source::Kind::constant) return std::nullopt;
  const uint64_t bits = mask.constant & low_mask(operation.width);
  if (bits & (bits + 1)) return std::nullopt;
  return std::pair{of.id, static_cast<unsigned>(std::popcount(bits))};
}

Form Forms::opened(const Form& form) {
  Form result = form;
  unsigned openings = 0;
  for (size_t i = 0; i < result.terms.size() && openings < kMaxOpenings;) {
    const Term term = result.terms[i];
    const Atom atom = atoms_[term.atom];
    Form inner;
    const bool is_sum = atom.kind == Atom::Kind::value || atom.kind == Atom::Kind::whole;
    if (is_sum) inner = compute(atom.id, kMaxOpenedTerms);
    bool is_opened = is_sum && !(inner.terms.size() == 1 && inner.terms[0].atom == term.atom);
    if (atom.kind == Atom::Kind::whole) {  // which keeps its base: as the value that is the base, if there is one
      const Base& base = domain_->base(inner.base);
      is_opened = base.kind == Base::Kind::loaded && base.id != atom.id;
      if (is_opened) inner = add(inner, {.terms = {{find_or_add({Atom::Kind::whole, base.id, 0, atom.width}), 1}}});
    }
    if (!is_opened) {
      ++i;
      continue;
    }
    result.terms.erase(result.terms.begin() + static_cast<ptrdiff_t>(i));
    inner.base = kNoBase;  // the atom is the value less its base
    ++openings;
    result = add(result, scale(inner, term.coefficient));
    i = 0;
  }
  return result;
}

Form Forms::without_masks(const Form& form, unsigned limit_bits) {
  Form result = opened(form);
  for (unsigned round = 0; round < kMaxExpansions; ++round) {
    Form next;
    const bool found = std::any_of(result.terms.begin(), result.terms.end(), [&](const Term& term) {
      const auto mask = atoms_[term.atom].kind == Atom::Kind::value ? masked(atoms_[term.atom].id) : std::nullopt;
      const uint64_t coefficient = static_cast<uint64_t>(term.coefficient);
      if (!mask || mask->second + static_cast<unsigned>(std::countr_zero(coefficient)) < limit_bits) return false;
      Form whole = opened(of(mask->first));
      // The object goes where it is taken away once; any other multiple of it is no form.
      const bool cancels = whole.base == result.base && ((coefficient + 1) & low_mask(limit_bits)) == 0;
      if (whole.base != kNoBase && !cancels) return false;
      next = result;
      next.terms.erase(std::find(next.terms.begin(), next.terms.end(), term));
      const BaseId base = whole.base != kNoBase ? kNoBase : result.base;
      whole.base = kNoBase;
      next = add(next, scale(whole, term.coefficient));
      next.base = base;
      next.modulus_bits = std::min(next.modulus_bits, limit_bits);
      return true;
    });
    if (!found) break;
    result = std::move(next);
  }
  return result;
}

}  // namespace ptxkit::flow
