// Known bits at one place of the program: what the tests on the way there add to the value domain.
//
// The domain knows one fact of a value, wherever it is used. Behind `(tid & 31) == 0` more is known of tid, and so of
// what is computed from it: (tid >> 3) is a multiple of 4. Values under the guard that holds here are read as if it
// were not there. Definitions are followed back for a few steps and not through phis, so that each value is the one of
// this turn of the loop.
#pragma once

#include <span>
#include <vector>

#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/forms.hpp"

namespace ptxkit::flow {

// Bits of a value, base included, that a condition fixes.
struct TestedBits {
  ValueId value = kNone;
  Bits bits;
};

// (a | b) & 15 == 0 fixes the low four bits of a and of b; a == 7 all bits of a.
std::vector<TestedBits> tested_bits(const Ssa& ssa, const Condition& condition);

class Refinement {
 public:
  Refinement(const Forms& forms, std::vector<Condition> conditions);

  const std::vector<TestedBits>& tests() const { return tests_; }
  // Of the value less the base that the domain gives it.
  Bits bits(ValueId id) const;
  Bits bits_of_atom(AtomId id) const;
  // Residue of the form's offset modulo 2^k with the largest k <= limit that is known; returns {k, residue}.
  std::pair<unsigned, uint64_t> residue(const Form& form, unsigned limit_bits) const;

 private:
  Fact fact(ValueId id, unsigned depth) const;
  Fact fact_of(const Source& source, unsigned width, unsigned depth) const;
  Fact computed(ValueId id, unsigned depth) const;
  void apply_tests(ValueId id, Fact& fact) const;

  const Forms* forms_;
  const Domain* domain_;
  std::vector<Condition> conditions_;
  std::vector<TestedBits> tests_;
};

}  // namespace ptxkit::flow
