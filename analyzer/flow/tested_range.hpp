// What a test of an integer against a constant leaves of it.
#pragma once

#include <cstdint>
#include <optional>

#include "analyzer/flow/conditions.hpp"

namespace ptxkit::flow {

// `low` to `high`, which are empty where the test cannot come out so.
struct TestedRange {
  Source source;  // a value or a special register
  uint64_t low = 0, high = 0;
};

// Nothing for other conditions, and for signed comparisons of what may be negative.
std::optional<TestedRange> tested_range(const Domain& domain, const Condition& condition);

}  // namespace ptxkit::flow
