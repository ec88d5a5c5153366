// Affine forms: integer values and addresses as base + constant + sum of coefficient * atom.
//
// An atom is a quantity that the forms do not look into: a special register, a scalar parameter, the iteration number
// of a loop, or an SSA value (less its base). Induction variables are found by their form: the value that comes back to
// a loop's phi is the phi itself plus a constant, so the phi is its start plus that constant times the iteration
// number.
//
// A form holds modulo 2^modulus_bits: 32-bit arithmetic may wrap, and a widened 32-bit value equals its form as a whole
// number only where its interval shows that nothing wrapped. Residues for alignment survive that; addresses that must
// be exact ask for modulus_bits == 64, or the width of the address.
#pragma once

#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "analyzer/flow/bits.hpp"
#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/facts.hpp"

namespace ptxkit::flow {

using AtomId = uint32_t;

struct Atom {
  enum class Kind : uint8_t {
    value,      // an SSA value less its base
    whole,      // an SSA value that has a base, base included: the other summand of a pointer sum
    special,    // a special register's component
    parameter,  // a scalar parameter: VariableId and byte offset
    iteration,  // of a loop, from 0
  } kind = Kind::value;
  uint32_t id = kNone;
  uint64_t detail = 0;  // component of a special, byte offset of a parameter
  unsigned width = 64;  // bits
  auto operator<=>(const Atom&) const = default;
};

struct Term {
  AtomId atom = 0;
  int64_t coefficient = 0;
  auto operator<=>(const Term&) const = default;
};

struct Form {
  BaseId base = kNoBase;
  unsigned modulus_bits = 64;
  int64_t constant = 0;
  std::vector<Term> terms{};  // by atom, coefficients not 0
  bool operator==(const Form&) const = default;
  bool is_constant() const { return base == kNoBase && terms.empty(); }
};

// Whole numbers that a form can take; the bounds saturate.
struct Interval {
  int64_t low = 0, high = 0;
};

struct Induction {
  LoopId loop = kNone;
  int64_t step = 0;
  Form start{};  // of the value less its base
};

class Forms {
 public:
  Forms(const Domain& domain, const Loops& loops);

  const Domain& domain() const { return *domain_; }
  const Loops& loops() const { return *loops_; }
  Form of(ValueId id) const;
  Form of(const Source& source, unsigned width);
  Form address(const ptx::Access& access);  // the displacement included
  // With every induction variable written as start + step * iteration.
  Form expand(const Form& form);
  // With every x & (2^k - 1) written as x, where that leaves the form right modulo 2^limit_bits: p - (p & 15) is then 0
  // modulo 16, whatever p and the object that it points into.
  Form without_masks(const Form& form, unsigned limit_bits);

  const Atom& atom(AtomId id) const { return atoms_[id]; }
  Bits bits(AtomId id) const;
  Interval interval(AtomId id) const;
  Interval interval(const Form& form) const;
  const Induction* induction(ValueId phi) const;
  // Residue of the form's offset modulo 2^k with the largest k <= limit that is known; returns {k, residue}.
  std::pair<unsigned, uint64_t> residue(const Form& form, unsigned limit_bits) const;
  AtomId find_or_add(const Atom& atom);

 private:
  struct Stored {
    BaseId base = kNoBase;
    uint32_t first = 0;
    uint16_t count = 0;
    uint16_t modulus_bits = 64;
    int64_t constant = 0;
  };
  Form compute(ValueId id, size_t max_terms);
  Form as_atom(ValueId id);
  // With sums that had too many terms, and are atoms therefore, written out.
  Form opened(const Form& form);
  // What the value has the low bits of, and how many they are; nothing where it is no such mask.
  std::optional<std::pair<ValueId, unsigned>> masked(ValueId id) const;
  void store(ValueId id, const Form& form);
  void find_inductions();

  const Domain* domain_;
  const Loops* loops_;
  std::vector<Stored> forms_;
  std::vector<Term> terms_;
  std::vector<Atom> atoms_;
  std::map<Atom, AtomId> atom_index_;
  std::map<ValueId, Induction> inductions_;
};

Form add(const Form& a, const Form& b);       // at most one has a base
Form subtract(const Form& a, const Form& b);  // equal bases cancel; precondition: b has none, or a's
Form scale(const Form& a, int64_t factor);    // precondition: no base

}  // namespace ptxkit::flow
