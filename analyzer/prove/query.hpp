// A question for the solver, written as SMT-LIB 2: symbols, definitions and assertions over bit-vectors.
//
// Equal terms are written once, so that what two threads compute alike is one term.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace ptxkit::prove {

// What a term rests on, besides the threads' numbers and what is known of the launch.
using Rests = uint8_t;
inline constexpr Rests kOnParameter = 1;  // a parameter or size of the launch that is not known
inline constexpr Rests kOnMemory = 2;     // memory that the kernel does not write
inline constexpr Rests kOnTurn = 4;       // how often a loop ran
inline constexpr Rests kOnUnknown = 8;    // a value that may be anything

// A bit-vector. A predicate has one bit.
struct Term {
  std::string text{};
  unsigned width = 1;
  Rests rests = 0;
  std::optional<uint64_t> constant{};
};

class Query {
 public:
  // `is_full` holds from so many definitions on.
  explicit Query(size_t most_terms) : most_terms_(most_terms) {}

  static Term constant(uint64_t value, unsigned width);
  static Term truth(bool value) { return constant(value, 1); }
  // Declared at the first call with this name. Returns whether it was, with `is_new`.
  Term symbol(const std::string& name, unsigned width, Rests rests, bool* is_new = nullptr);
  // What the memory called `name` holds at an address.
  Term memory(const std::string& name, const Term& address, unsigned width);
  Term apply(std::string_view function, unsigned width, std::initializer_list<Term> arguments);
  // A function whose result is no bit-vector but a truth value: bvult, =, distinct.
  Term test(std::string_view function, const Term& a, const Term& b);

  Term both(const Term& a, const Term& b);
  Term either(const Term& a, const Term& b);
  Term negation(const Term& a);
  Term choose(const Term& condition, const Term& then, const Term& otherwise);
  // The low `width` bits, or the term with zeros or copies of its sign above.
  Term resized(const Term& term, unsigned width, bool is_signed = false);
  Term part(const Term& term, unsigned first_bit, unsigned width);

  void require(const Term& condition);

  bool is_full() const { return definitions_.size() > most_terms_; }
  const std::string& text() const { return text_; }

 private:
  Term define(const std::string& expression, unsigned width, Rests rests);

  size_t most_terms_;
  std::string text_;
  std::map<std::string, Term> definitions_;  // by expression
  std::map<std::string, Term> symbols_;
  std::set<std::string> memories_, required_;
};

}  // namespace ptxkit::prove
