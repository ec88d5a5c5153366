// What is left of the steps that a search may take. Hostile control flow makes many searches quadratic or worse: one
// whose budget is spent says nothing, and its rules are undecided.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ptxkit::flow {

class StepBudget {
 public:
  explicit StepBudget(uint64_t steps) : left_(steps) {}

  void take(uint64_t steps) { left_ -= std::min(left_, steps); }
  bool is_spent() const { return left_ == 0; }

 private:
  uint64_t left_;
};

}  // namespace ptxkit::flow
