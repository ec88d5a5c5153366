// The difference of a value between two threads, even where neither value is known. For (y * pitch + x) * 6, two
// threads of one row differ by 6 for each step in x, whatever the pitch.
#pragma once

#include <map>
#include <optional>

#include "analyzer/flow/evaluate.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/flow/uniformity.hpp"

namespace ptxkit::flow {

class Delta {
 public:
  // The two threads must differ only in the component of %tid that `row` was built for.
  Delta(const Forms& forms, const UniformityAnalysis& row, const Thread& first, const Thread& second,
        std::map<LoopId, int64_t> iterations);

  // Value of the second thread minus that of the first, modulo 256, bases included. Nothing where it is unknown.
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
