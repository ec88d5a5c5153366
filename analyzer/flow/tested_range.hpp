// The range of an integer after a comparison with a constant.
#pragma once

#include <cstdint>
#include <optional>

#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/operation.hpp"

namespace ptxkit::flow {

// `low` to `high`; low > high where the test cannot have this outcome.
struct TestedRange {
  Source source;  // a value or a special register
  uint64_t low = 0, high = 0;
};

// Nothing for other conditions, and for signed comparisons of possibly negative values.
std::optional<TestedRange> tested_range(const Domain& domain, const Condition& condition);

}  // namespace ptxkit::flow
