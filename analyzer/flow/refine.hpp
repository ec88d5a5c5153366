// Known bits at one place of the program: the value domain sharpened by the tests that lead to the place.
//
// The domain has one fact per value, wherever it is used. After `(tid & 31) == 0` more is known about tid, and about
// values computed from it: (tid >> 3) is a multiple of 4. Values under the guard in effect are treated as unguarded.
// Definitions are followed back a few steps and not through phis, so all values belong to one iteration.
#pragma once

#include <iterator>
#include <utility>
#include <vector>

#include "analyzer/flow/bits.hpp"
#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/ssa.hpp"

namespace ptxkit::flow {

// Bits of a value, base included, that a condition fixes.
struct TestedBits {
  ValueId value = kNone;
  Bits bits;
};

// (a | b) & 15 == 0 fixes the low four bits of a and b; a == 7 fixes all bits of a.
std::vector<TestedBits> tested_bits(const Ssa& ssa, const Condition& condition);

class Refinement {
 public:
  Refinement(const Forms& forms, std::vector<Condition> conditions);

  const std::vector<TestedBits>& tests() const { return tests_; }
  // Of the value minus the base that the domain gives it.
  Bits bits(ValueId id) const;
  Bits bits_of_atom(AtomId id) const;
  // The residue of the form's offset modulo 2^k, for the largest known k <= limit; returns {k, residue}.
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
