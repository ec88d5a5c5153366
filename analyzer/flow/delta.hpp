// How much a value differs between two threads, where neither value need be known: of (y * pitch + x) * 6 two threads
// of one row know that they are 6 apart for each step in x, whatever the pitch.
#pragma once

#include "analyzer/flow/evaluate.hpp"
#include "analyzer/flow/uniformity.hpp"

namespace ptxkit::flow {

class Delta {
 public:
  // The two threads differ in the component of %tid alone that `row` was made for.
  Delta(const Forms& forms, const UniformityAnalysis& row, const Thread& first, const Thread& second,
        std::map<LoopId, int64_t> iterations);

  // Second less first, modulo 256, bases included. Nothing where it cannot be known.
  std::optional<uint64_t> of(ValueId id) { return of(id, 0); }
  std::optional<uint64_t> of_atom(AtomId id);
  Evaluator& first() { return first_; }
  Evaluator& second() { return second_; }

 private:
  std::optional<uint64_t> of(ValueId id, unsigned depth);
  std::optional<uint64_t> of(const Source& source, unsigned width, unsigned depth);
  std::optional<uint64_t> product(const Operation& operation, unsigned width, unsigned depth);
  ValueId first_argument(ValueId phi) const;

  const Forms* forms_;
  const UniformityAnalysis* row_;
  Evaluator first_, second_;
  std::map<LoopId, int64_t> iterations_;
};

}  // namespace ptxkit::flow
