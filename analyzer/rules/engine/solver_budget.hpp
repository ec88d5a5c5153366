// How much one rule may ask the solver about one kernel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "analyzer/prove/solver.hpp"
#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

class SolverBudget {
 public:
  static constexpr size_t kMaxTerms = 300;  // of a question

  // Options::solver is not null once something is asked.
  explicit SolverBudget(const Options& options)
      : options_(&options), steps_left_(uint64_t{kShare} * options.prove_steps) {}

  bool is_spent() const { return open_left_ == 0 || steps_left_ == 0; }
  // An unknown reply, without asking, if no steps are left.
  prove::Reply ask(const std::string& question) {
    const auto steps = static_cast<uint32_t>(std::min<uint64_t>(steps_left_, options_->prove_steps));
    if (steps == 0) return {};
    prove::Reply reply = options_->solver->ask(question, steps);
    steps_left_ -= std::min<uint64_t>(steps_left_, reply.steps);
    return reply;
  }
  // One that stays open leaves the rule open; a few more may still decide something.
  void count_open() { --open_left_; }
  void spend_all() { open_left_ = 0; }

 private:
  static constexpr unsigned kMaxOpen = 2;
  static constexpr unsigned kShare = 2;  // times the steps of a question, for all of them

  const Options* options_;
  unsigned open_left_ = kMaxOpen;
  uint64_t steps_left_;
};

}  // namespace ptxkit::rules
