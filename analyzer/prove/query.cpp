#include "analyzer/prove/query.hpp"

#include <fmt/format.h>

#include "analyzer/flow/bits.hpp"

namespace ptxkit::prove {

using flow::low_mask;

Term Query::constant(uint64_t value, unsigned width) {
  value &= low_mask(width);
  return {fmt::format("(_ bv{} {})", value, width), width, 0, value};
}

Term Query::symbol(const std::string& name, unsigned width, Rests rests, bool* is_new) {
  const auto [place, added] = symbols_.try_emplace(name, Term{name, width, rests, std::nullopt});
  if (added) text_ += fmt::format("(declare-const {} (_ BitVec {}))\n", name, width);
  if (is_new) *is_new = added;
  return place->second;
}

Term Query::memory(const std::string& name, const Term& address, unsigned width) {
  if (memories_.insert(name).second)
    text_ += fmt::format("(declare-fun {} ((_ BitVec {})) (_ BitVec {}))\n", name, address.width, width);
  return define(fmt::format("({} {})", name, address.text), width, static_cast<Rests>(address.rests | kOnMemory));
}

Term Query::define(const std::string& expression, unsigned width, Rests rests) {
  const auto [place, added] = definitions_.try_emplace(expression);
  if (added) {
    const std::string name = fmt::format("t{}", definitions_.size());
    // Z3 takes quadratic time to read as many define-fun.
    text_ += fmt::format("(declare-const {0} (_ BitVec {1}))\n(assert (= {0} {2}))\n", name, width, expression);
    place->second = {name, width, rests, std::nullopt};
  }
  return place->second;
}

Term Query::apply(std::string_view function, unsigned width, std::initializer_list<Term> arguments) {
  std::string expression = fmt::format("({}", function);
  Rests rests = 0;
  for (const Term& argument : arguments) {
    expression += ' ' + argument.text;
    rests |= argument.rests;
  }
  return define(expression + ')', width, rests);
}

Term Query::test(std::string_view function, const Term& a, const Term& b) {
  if (a.constant && b.constant && function == "=") return truth(*a.constant == *b.constant);
  return define(fmt::format("(ite ({} {} {}) #b1 #b0)", function, a.text, b.text), 1,
                static_cast<Rests>(a.rests | b.rests));
}

Term Query::both(const Term& a, const Term& b) {
  if (a.constant) return *a.constant ? b : a;
  if (b.constant) return *b.constant ? a : b;
  return a.text == b.text ? a : apply("bvand", 1, {a, b});
}

Term Query::either(const Term& a, const Term& b) {
  if (a.constant) return *a.constant ? a : b;
  if (b.constant) return *b.constant ? b : a;
  return a.text == b.text ? a : apply("bvor", 1, {a, b});
}

Term Query::negation(const Term& a) {
  if (a.constant) return truth(*a.constant == 0);
  return apply("bvnot", 1, {a});
}

Term Query::choose(const Term& condition, const Term& then, const Term& otherwise) {
  if (condition.constant) return *condition.constant ? then : otherwise;
  if (then.text == otherwise.text) return then;
  return define(fmt::format("(ite (= {} #b1) {} {})", condition.text, then.text, otherwise.text), then.width,
                static_cast<Rests>(condition.rests | then.rests | otherwise.rests));
}

Term Query::resized(const Term& term, unsigned width, bool is_signed) {
  if (width < term.width) return part(term, 0, width);
  if (width == term.width) return term;
  const unsigned more = width - term.width;
  if (!term.constant || width > 64)
    return apply(fmt::format("(_ {} {})", is_signed ? "sign_extend" : "zero_extend", more), width, {term});
  const bool is_negative = is_signed && (*term.constant >> (term.width - 1) & 1);
  return constant(is_negative ? *term.constant | ~low_mask(term.width) : *term.constant, width);
}

Term Query::part(const Term& term, unsigned first_bit, unsigned width) {
  if (first_bit == 0 && width == term.width) return term;
  if (term.constant) return constant(*term.constant >> first_bit, width);
  return apply(fmt::format("(_ extract {} {})", first_bit + width - 1, first_bit), width, {term});
}

void Query::require(const Term& condition) {
  if (condition.constant == 1u) return;
  if (required_.insert(condition.text).second) text_ += fmt::format("(assert (= {} #b1))\n", condition.text);
}

}  // namespace ptxkit::prove
